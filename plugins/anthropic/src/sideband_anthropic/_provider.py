"""The provider: sends requests to the Messages API and reads the responses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any
from urllib.parse import quote

from attrs import define, field
from sideband.messages import JsonPieces, Usage
from sideband.plugins import PluginContext
from sideband.providers import Finished, ModelInfo, ModelRequest, ProviderError, ProviderRefused, StreamEvent
from sideband_model_client import (
    ServiceAccess,
    ServiceConnections,
    ServiceReply,
    ServiceRequest,
    broken,
    find_access,
    not_a_model,
    parse_json,
    parse_object,
    refused_inside,
)

from ._config import Config
from ._known_models import Model, described, known_model, known_models, with_aliases
from ._messages import conversation, has_thoughts
from ._request import request_body
from ._service import ANTHROPIC
from ._stream import MessagesReader

_MAX_LIST_BYTES = 4 << 20
_MAX_MESSAGE_BYTES = 16 << 20
_MAX_ERROR_CHARACTERS = 64 << 10
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
        async with self._open(request, model, access, ctx) as (reply, whole):
            reader = MessagesReader(reply)
            try:
                if whole is not None:
                    for part in reader.read_whole(whole):
                        yield part
                else:
                    async with aclosing(reader.read()) as events:
                        async for event in events:
                            yield event
            except ProviderError as error:
                error.usage = reader.usage and _priced(reader.usage, model)
                raise
        message = reader.message()
        yield Finished(message=message.model_copy(update={"usage": _priced(message.usage, model)}))

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
    ) -> AsyncIterator[tuple[ServiceReply, Mapping[str, Any] | None]]:
        """Send the request. Yield the reply once it has begun without an error, and its message if that is whole.

        The service accepts thinking blocks only unchanged, from the same model, and after the same messages. If it
        rejects them, the request is sent again without them: losing them is better than ending the conversation.
        """
        config: Config = ctx.config
        for thoughts in (True, False):
            body = request_body(request, model, provider=self.name, cache=config.cache, thoughts=thoughts)
            async with self._exchange("/v1/messages", access, ctx, body) as reply:
                begun = await _begun(reply)
                if not isinstance(begun, ProviderRefused):
                    yield reply, begun
                    return
            if not (thoughts and self._sends_thoughts(request) and _is_about_thoughts(begun)):
                raise begun

    def _sends_thoughts(self, request: ModelRequest) -> bool:
        return has_thoughts(conversation(request.messages, model=f"{self.name}:{request.model}", thoughts=True))

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
        self, path: str, access: ServiceAccess, ctx: PluginContext, body: JsonPieces | None = None
    ) -> AsyncIterator[ServiceReply]:
        config: Config = ctx.config
        connections: ServiceConnections = ctx.state
        request = ServiceRequest(
            access, path, body, connect_timeout=config.connect_timeout, idle_timeout=config.idle_timeout
        )
        async with connections.exchange(request) as reply:
            yield reply


async def _begun(reply: ServiceReply) -> ProviderRefused | Mapping[str, Any] | None:
    """Return the error that the service sent, or a whole message, or ``None`` if a stream has begun."""
    try:
        await reply.check()
        if not await reply.is_json():
            return None
    except ProviderRefused as error:
        return error
    text = await reply.text(_MAX_MESSAGE_BYTES)
    try:
        data = parse_json(text)
        data = parse_object(text, halves=True) if isinstance(data, dict) else data
    except ValueError as error:
        raise broken(reply.access, f"invalid JSON in the response: {error}") from None
    if isinstance(data, dict) and data.get("error") is not None:
        return refused_inside(reply.access, data["error"], reply.headers, body=text[:_MAX_ERROR_CHARACTERS])
    if isinstance(data, dict) and data.get("type") == "message":
        return data  # some servers do not stream
    return not_a_model(reply.access, "unexpected JSON", text[:_MAX_ERROR_CHARACTERS], reply.headers)


def _priced(usage: Usage, model: Model) -> Usage:
    """Return the usage with its cost, if the price depends on the length of the prompt."""
    cost = model.cost(usage)
    return usage if cost is None else Usage.model_validate({**usage.model_dump(), "cost": cost})


def _is_about_thoughts(error: ProviderRefused) -> bool:
    body = error.body.lower()
    return error.status == 400 and ("thinking" in body or "bound to a different conversation" in body)
