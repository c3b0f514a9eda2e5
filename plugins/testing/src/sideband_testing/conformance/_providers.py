"""The conformance class of model providers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from types import MappingProxyType
from typing import Any, ClassVar

import attrs
import pytest
from sideband import Host, Plugin
from sideband.messages import TextPart, ThinkingPart, ToolCallPart, UserMessage
from sideband.plugins import LoadedPlugin
from sideband.providers import (
    Finished,
    ModelInfo,
    ModelRequest,
    Provider,
    ProviderError,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)

from ._base import CANARY, Conformance
from ._failing import fail
from ._leftovers import held, left_since
from ._stepping import Steps
from ._subject import registering, wrapped

_MODEL = "test"


class ProviderConformance(Conformance):
    """The tests of a provider: a plugin in the group ``sideband.v1.provider``.

    Its configuration should name a server of the test, such as that of the fixture ``http_server``.

    Attributes:
        provider: the name of the provider in the plugin, by default that of the plugin.
        requests: requests that have an answer.
        failing: requests that fail, by the code of their error.
        usage: whether its answers contain the tokens that were used.

    Example:
        >>> class TestScripted(ProviderConformance):
        ...     plugin = "provider.scripted"
        ...     requests = [ModelRequest(model="demo", messages=[UserMessage(content="hello")])]
    """

    kind = "provider"
    provider: ClassVar[str] = ""
    requests: ClassVar[Sequence[ModelRequest]] = ()
    failing: ClassVar[Mapping[str, ModelRequest]] = MappingProxyType({})
    usage: ClassVar[bool] = True

    def test_stream_ends_with_one_finished_message(self) -> None:
        """Check that a stream has deltas, then ``Finished`` once, whose message is what the deltas were."""
        self._need("requests", self.requests)

        async def check() -> None:
            async with self.open_provider() as (provider, ctx):
                for request in self.requests:
                    events = await _all(provider, request, ctx)
                    ended = [number for number, one in enumerate(events) if isinstance(one, Finished)]
                    if ended != [len(events) - 1]:
                        self._wrong("a stream ends with one `Finished`", _shown(events), "yield it once, at the end")
                    self._check_message(events)

        for backend in self.backends:
            self.run(check, backend=backend)

    def test_usage_is_reported(self) -> None:
        """Check that an answer contains how many tokens were used, from which its cost is computed."""
        self._need("requests", self.requests)
        if not self.usage:
            pytest.skip("`usage` is false: the service does not report it")

        async def check() -> None:
            async with self.open_provider() as (provider, ctx):
                for request in self.requests:
                    finished = (await _all(provider, request, ctx))[-1]
                    usage = getattr(getattr(finished, "message", None), "usage", None)
                    if usage is None or not usage.output:
                        self._wrong(
                            "an answer has the usage that the service reported",
                            f"its usage is {usage!r}",
                            "read it from the stream, and set `usage=False` if the service does not send it",
                        )

        self.run(check)

    def test_failures_are_typed(self) -> None:
        """Check that a model call that fails raises a ``ProviderError`` with its code."""
        self._need("failing", self.failing)

        async def check() -> None:
            async with self.open_provider() as (provider, ctx):
                for code, request in self.failing.items():
                    happened = ""
                    try:
                        events = await _all(provider, request, ctx)
                        happened = f"it answered: {_shown(events)}"
                    except ProviderError as error:
                        if error.code != code:
                            happened = f"{error.code}: {error.message}"
                    except Exception as error:  # noqa: BLE001  that is what is checked
                        happened = f"{type(error).__name__}: {error}"
                    if happened:
                        self._wrong(
                            f"the request of `failing[{code!r}]` raises a `ProviderError` with that code",
                            happened,
                            "raise `ProviderRefused`, `ProviderUnreachable`, `ProviderTimeout` or `StreamBroken`",
                        )

        self.run(check)

    def test_models_are_listed(self) -> None:
        """Check that ``models`` lists each model once, as a ``ModelInfo``, or raises a ``ProviderError``."""

        async def check() -> None:
            async with self.open_provider() as (provider, ctx):
                try:
                    found = list(await provider.models(ctx))
                except ProviderError:
                    return
                except Exception as error:  # noqa: BLE001  that is what is checked
                    self._wrong(
                        "`models` lists models, or raises a `ProviderError`",
                        f"{type(error).__name__}: {error}",
                        "raise `ProviderUnreachable` or `ProviderUnconfigured` with a hint",
                    )
                wrong = [one for one in found if not isinstance(one, ModelInfo)]
                names = [one.id for one in found if isinstance(one, ModelInfo)]
                if wrong or len(names) != len(set(names)):
                    self._wrong("`models` lists each model once, as a `ModelInfo`", repr(found), "correct the list")

        self.run(check)

    def test_cancellation_closes_the_connection(self) -> None:
        """Check that a stream that is cancelled wherever it waits leaves no connection, task or thread."""
        self._need("requests", self.requests)

        async def check() -> None:
            for request in self.requests:
                steps = Steps()
                async with self.open_provider(self._watched(steps)) as (provider, ctx):
                    await self.cancel_everywhere(
                        f"the stream of `{request.model}`",
                        steps,
                        lambda: _all(provider, request, ctx),  # noqa: B023
                    )

        for backend in self.backends:
            self.run(check, backend=backend)

    def test_closed_stream_closes_the_connection(self) -> None:
        """Check that a stream that is closed after its first event leaves no connection, task or thread."""
        self._need("requests", self.requests)

        async def check() -> None:
            async with self.open_provider() as (provider, ctx):
                for request in self.requests:
                    for round_ in range(3):
                        if round_ == 2:
                            before = held()
                        async with aclosing(provider.stream(request, ctx)) as events:  # type: ignore[type-var]
                            await anext(aiter(events))
                    if left := await left_since(before):
                        self._wrong(
                            "a stream that is closed early closes its connection",
                            f"it leaves {', '.join(left)}",
                            "use `async with` for the response inside the generator",
                        )

        self.run(check)

    def test_secrets_stay_hidden(self, caplog: pytest.LogCaptureFixture) -> None:
        """Check that what a request contains appears in no log."""
        self._need("requests", self.requests)
        caplog.set_level(0)

        async def check() -> None:
            async with self.open_provider() as (provider, ctx):
                for request in self.requests:
                    asked = request.model_copy(update={"messages": (*request.messages[:-1], _said(CANARY))})
                    try:
                        await _all(provider, asked, ctx)
                    except ProviderError:
                        continue

        self.run(check)
        if CANARY in caplog.text:
            self._wrong("it does not log what requests contain", "a log has it", "log names and numbers, not content")

    @asynccontextmanager
    async def open_provider(self, plugin: Plugin | None = None) -> AsyncIterator[tuple[Provider, Any]]:
        """Open a host, and return the provider and the context of its plugin."""
        async with self.open_host(plugin=plugin) as host:
            loaded = await host.plugins.load("provider", self.subject.name)
            yield self._find(loaded), loaded.context

    async def exercise(self, host: Host) -> None:
        """Make all requests."""
        loaded = await host.plugins.load("provider", self.subject.name)
        for request in self.requests:
            await _all(self._find(loaded), request, loaded.context)

    def _find(self, loaded: LoadedPlugin) -> Provider:
        name = self.provider or self.subject.name
        found: Provider | None = next((one for one in loaded.contribution if one.name == name), None)
        if found is None:
            known = ", ".join(one.name for one in loaded.contribution)
            fail(
                self.label,
                expected=f"a provider `{name}`",
                happened=f"its providers are {known}",
                remedy="set `provider` in the test class",
            )
        return found

    def _watched(self, steps: Steps) -> Plugin:
        def change(providers: Sequence[Provider]) -> list[Any]:
            return [_Watched(one, steps.watch_generator(one.stream)) for one in providers]

        return wrapped(self.subject, {"sideband_providers": registering(self.subject.value.sideband_providers, change)})

    def _need(self, name: str, given: object) -> None:
        if not given:
            pytest.skip(f"no requests: set `{name}` in a test class of your own, to check what it answers")

    def _check_message(self, events: Sequence[Any]) -> None:
        message = events[-1].message
        for delta, part, field in ((TextDelta, TextPart, "text"), (ThinkingDelta, ThinkingPart, "text")):
            said = "".join(one.text for one in events if isinstance(one, delta))
            stored = "".join(getattr(one, field) for one in message.content if isinstance(one, part))
            if said and said != stored:
                self._wrong(
                    "the finished message has the text of the deltas",
                    f"{said!r} became {stored!r}",
                    "build the message from what was yielded",
                )
        calls = {one.index for one in events if isinstance(one, ToolCallDelta)}
        stored_calls = [one for one in message.content if isinstance(one, ToolCallPart)]
        if calls and len(calls) != len(stored_calls):
            self._wrong(
                "the finished message has the tool calls of the deltas",
                f"{len(calls)} became {len(stored_calls)}",
                "use one `index` for all deltas of a call",
            )

    def _wrong(self, expected: str, happened: str, remedy: str) -> Any:
        fail(self.label, expected=expected, happened=happened, remedy=remedy)


@attrs.define
class _Watched:
    """A provider whose stream is watched."""

    _provider: Provider
    stream: Callable[..., AsyncIterator[Any]]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)


def _said(text: str) -> UserMessage:
    return UserMessage(content=(TextPart(text=text),))


async def _all(provider: Provider, request: ModelRequest, ctx: Any) -> list[Any]:
    async with aclosing(provider.stream(request, ctx)) as events:  # type: ignore[type-var]
        return [one async for one in events]


def _shown(events: Sequence[Any]) -> str:
    return ", ".join(type(one).__name__ for one in events) or "no event"
