"""The provider: sends requests to the Messages API and reads the responses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any
from urllib.parse import quote

from attrs import define, field
from sideband.messages import Usage
from sideband.plugins import PluginContext
from sideband.providers import Finished, ModelInfo, ModelRequest, ProviderRefused, StreamEvent
from sideband_model_client import (
    ServiceAccess,
    ServiceConnections,
    ServiceReply,
    ServiceRequest,
    broken,
    find_access,
    not_a_model,
    parse_object,
    refused_inside,
)

from ._config import Config
from ._known_models import Model, described, known_model, known_models, with_aliases
from ._messages import has_thoughts
from ._request import request_body
from ._service import ANTHROPIC
from ._stream import MessagesReader

_MAX_LIST_BYTES = 4 << 20
_MAX_ERROR_BYTES = 64 << 10
_MAX_PAGES = 20
_NOT_IMPLEMENTED = frozenset({404, 405, 501})


@define(eq=False)
class Anthropic:
    """The provider. The ``state`` of its plugin context is a ``ServiceConnections``.

    Attributes:
        name: the part before the colon in ``anthropic:claude-opus-5``.
    """

    name: str = "anthropic"
    _models: dict[str, Model] = field(factory=dict, init=False)

    async def models(self, ctx: PluginContext) -> Sequence[ModelInfo]:
        """Return the models that the key has access to, or those of the data file if the service has no list.

        Raises:
            ProviderError: if the request fails.
            ProviderUnconfigured: if the key is missing.
        """
        access = await self._access(ctx)
        try:
            listed = with_aliases([described(entry) async for entry in self._listed(access, ctx)])
        except ProviderRefused as error:
            if error.status not in _NOT_IMPLEMENTED:
                raise
            listed = known_models()
        self._models = {model.id: model for model in listed}
        return [model.info for model in listed]

    async def stream(self, request: ModelRequest, ctx: PluginContext) -> AsyncIterator[StreamEvent]:
        """Stream a response. See ``Provider.stream``."""
        access = await self._access(ctx)
        model = self._models.get(request.model) or known_model(request.model)
        async with self._open(request, model, access, ctx) as reply:
            reader = MessagesReader(reply)
            async with aclosing(reader.read()) as events:
                async for event in events:
                    yield event
        message = reader.message()
        cost = model.cost(message.usage)
        if cost is not None:
            usage = Usage.model_validate({**message.usage.model_dump(), "cost": cost})
            message = message.model_copy(update={"usage": usage})
        yield Finished(message=message)

    async def _access(self, ctx: PluginContext) -> ServiceAccess:
        config: Config = ctx.config
        betas = {"anthropic-beta": ",".join(config.betas)} if config.betas else {}
        headers = {**config.headers, "anthropic-version": config.version, **betas}
        return await find_access(
            ANTHROPIC, ctx, provider=self.name, base_url=config.base_url, key=config.key, headers=headers
        )

    @asynccontextmanager
    async def _open(
        self, request: ModelRequest, model: Model, access: ServiceAccess, ctx: PluginContext
    ) -> AsyncIterator[ServiceReply]:
        """Send the request and yield the reply once it has begun without an error.

        The service accepts thinking blocks only unchanged, from the same model, and after the same messages. If it
        rejects them, the request is sent again without them: losing them is better than ending the conversation.
        """
        config: Config = ctx.config
        for thoughts in (True, False):
            body = request_body(request, model, provider=self.name, cache=config.cache, thoughts=thoughts)
            async with self._exchange("/v1/messages", access, ctx, body) as reply:
                error = await _refusal(reply)
                if error is None:
                    yield reply
                    return
            if not (thoughts and has_thoughts(body["messages"]) and _is_about_thoughts(error)):
                raise error

    async def _listed(self, access: ServiceAccess, ctx: PluginContext) -> AsyncIterator[dict[str, Any]]:
        after = ""
        for _ in range(_MAX_PAGES):
            page = await self._page(f"/v1/models?limit=1000{after}", access, ctx)
            entries = page.get("data")
            for entry in entries if isinstance(entries, list) else []:
                if isinstance(entry, dict) and isinstance(entry.get("id"), str) and entry.get("lifecycle") != "retired":
                    yield entry
            last = page.get("last_id")
            if page.get("has_more") is not True or not isinstance(last, str):
                return
            after = f"&after_id={quote(last, safe='')}"

    async def _page(self, path: str, access: ServiceAccess, ctx: PluginContext) -> dict[str, Any]:
        async with self._exchange(path, access, ctx) as reply:
            await reply.check()
            text = await reply.text(_MAX_LIST_BYTES)
        try:
            return parse_object(text)
        except ValueError:
            raise not_a_model(access, "something other than a list of models", text, reply.headers) from None

    @asynccontextmanager
    async def _exchange(
        self, path: str, access: ServiceAccess, ctx: PluginContext, body: Mapping[str, Any] | None = None
    ) -> AsyncIterator[ServiceReply]:
        config: Config = ctx.config
        connections: ServiceConnections = ctx.state
        request = ServiceRequest(
            access, path, body, connect_timeout=config.connect_timeout, idle_timeout=config.idle_timeout
        )
        async with connections.exchange(request) as reply:
            yield reply


async def _refusal(reply: ServiceReply) -> ProviderRefused | None:
    """Return the error that the service sent instead of a stream, or ``None`` if the stream has begun."""
    try:
        await reply.check()
    except ProviderRefused as error:
        return error
    if reply.kind != "application/json":
        return None
    text = await reply.text(_MAX_ERROR_BYTES)
    try:
        reported = parse_object(text).get("error")
    except ValueError:
        reported = None
    if reported is None:
        raise broken(reply.access, "expected an event stream, got `application/json`")
    return refused_inside(reply.access, reported, reply.headers, body=text)


def _is_about_thoughts(error: ProviderRefused) -> bool:
    body = error.body.lower()
    return error.status == 400 and ("thinking" in body or "bound to a different conversation" in body)
