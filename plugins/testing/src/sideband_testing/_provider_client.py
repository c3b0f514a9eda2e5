"""Calls of model providers, as the op family `llm` makes them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Any, cast

from sideband import Host
from sideband.messages import AssistantMessage, UserMessage
from sideband.plugins import PluginContext
from sideband.providers import Finished, ModelInfo, ModelRequest, Provider, StreamEvent, ToolSchema

from ._errors import KitError


class ProviderClient:
    """Calls a model provider of a host directly, for tests of the provider.

    Args:
        host: the host, which is open.
        name: the name of the provider.

    Example:
        >>> async def test_answer(sideband_host, http_server):
        ...     async with sideband_host("provider.acme") as host:
        ...         message = await ProviderClient(host, "acme").ask("Hello.", model="acme-1")
        ...     assert message.text == "Hi."
    """

    def __init__(self, host: Host, name: str) -> None:
        self.host, self.name = host, name

    @staticmethod
    def request(*messages: Any, tools: Iterable[str | ToolSchema] = (), **fields: Any) -> ModelRequest:
        """Return a request.

        Args:
            messages: the messages; a text is one of the user. By default, ``hello``.
            tools: the tools; a text is the name of one without parameters.
            fields: other fields of ``ModelRequest``; ``model`` is ``test`` by default.
        """
        said = [UserMessage(content=one) if isinstance(one, str) else one for one in messages or ("hello",)]
        schemas = [ToolSchema(name=one) if isinstance(one, str) else one for one in tools]
        return ModelRequest(**{"model": "test", "messages": said, "tools": schemas, **fields})

    def of(self, name: str) -> ProviderClient:
        """Return a client of another provider of the host."""
        return ProviderClient(self.host, name)

    async def provider(self) -> tuple[Provider, PluginContext]:
        """Return the provider and its context."""
        return await self.host.broker.ops.provider(self.name)

    async def models(self) -> Sequence[ModelInfo]:
        """Return the models of the provider."""
        provider, ctx = await self.provider()
        return await provider.models(ctx)

    async def events(self, *messages: Any, into: list[StreamEvent] | None = None, **fields: Any) -> list[StreamEvent]:
        """Send a request, and return the events of the stream.

        Args:
            messages: one ``ModelRequest``, or the messages of one, see ``request``.
            into: a list for the events, which also has them if the stream fails.
            fields: the fields of the request, see ``request``.
        """
        provider, ctx = await self.provider()
        events = [] if into is None else into
        is_request = len(messages) == 1 and isinstance(messages[0], ModelRequest)
        request = messages[0] if is_request else self.request(*messages, **fields)
        events_of = cast("AsyncGenerator[StreamEvent]", provider.stream(request, ctx))
        async with aclosing(events_of) as stream:
            async for event in stream:
                events.append(event)
        return events

    async def ask(self, *messages: Any, into: list[StreamEvent] | None = None, **fields: Any) -> AssistantMessage:
        """Send a request, and return the message. See ``events``.

        Raises:
            KitError: if the last event is not ``Finished``, or another one is.
        """
        events = await self.events(*messages, into=into, **fields)
        finished = [event for event in events if isinstance(event, Finished)]
        if len(finished) != 1 or finished[0] is not events[-1]:
            kinds = ", ".join(type(event).__name__ for event in events[-3:]) or "nothing"
            raise KitError(
                f"the stream of `{self.name}` ended with {kinds}", hint="yield `Finished` once, as the last event"
            )
        return finished[0].message
