"""The provider for one service."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from attrs import define, evolve
from pydantic_core import to_json
from sideband.messages import AssistantMessage, Fragment, JsonPieces, Usage
from sideband.plugins import PluginContext
from sideband.providers import (
    EmbeddingRequest,
    Embeddings,
    Finished,
    ModelInfo,
    ModelRequest,
    ProviderError,
    StreamEvent,
)
from sideband_model_client import (
    EventStreamCut,
    EventStreamError,
    ServerSentEvent,
    ServiceAccess,
    ServiceConnections,
    ServiceReply,
    ServiceRequest,
    broken,
    find_access,
    not_a_model,
    parse_json,
    read_events,
    refused_inside,
)

from ._chat_request import chat_body
from ._chat_stream import ChatReader
from ._config import OpenAIService
from ._embeddings import embeddings_of
from ._messages import has_audio
from ._model_list import listed_models
from ._response import Malformed, ReportedError
from ._responses_request import responses_body
from ._responses_stream import ResponsesReader
from ._service import is_official, model_service

_MAX_ERROR_CHARACTERS = 64 << 10
_MAX_JSON_BYTES = 16 << 20
# An event of a few hundred bytes carries only a few characters of text.
_MAX_STREAM_BYTES = 256 << 20
# 256 vectors of 3,072 numbers of 22 characters.
_MAX_EMBEDDINGS_BYTES = 32 << 20
_LISTING_SECONDS = 30.0


class _ResponseReader(Protocol):
    """Reads one response in one of the protocols."""

    is_done: bool

    @property
    def usage(self) -> Usage | None:
        """The usage, as far as the server has reported it."""

    def feed(self, event: ServerSentEvent) -> Iterator[StreamEvent]:
        """Yield the parts that an event adds to the response."""

    def feed_data(self, data: dict[str, Any]) -> Iterable[StreamEvent]:
        """Yield the parts of a chunk, or of a whole response. Set ``is_done`` afterwards if it is whole."""

    def message(self) -> AssistantMessage:
        """Return the complete response."""


@define
class OpenAIProvider:
    """The provider for one service.

    Attributes:
        name: the name of the provider.
        service: the configuration of the service.
        environment: whether to read the environment variables ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``.
        is_guessed: whether the service is not configured, but may run on this machine. It never receives a key.
    """

    name: str
    service: OpenAIService
    environment: bool = False
    is_guessed: bool = False

    async def models(self, ctx: PluginContext) -> Sequence[ModelInfo]:
        """Return the models that the server lists. A guessed server may be absent; its list is then empty."""
        access = await self._access(ctx)
        if self.service.api_version is not None:
            return ()  # an Azure key has no permission to list deployments
        try:
            return await self._listed(access, ctx.state)
        except ProviderError:
            if self.is_guessed:
                return ()
            raise

    async def stream(self, request: ModelRequest, ctx: PluginContext) -> AsyncGenerator[StreamEvent, None]:
        """Stream a response. See ``Provider.stream``."""
        access = await self._access(ctx)
        path, body, reader = self._prepared(request, access)
        connections: ServiceConnections = ctx.state
        async with connections.exchange(self._call(access, path, body)) as reply:
            await reply.check()
            with _converted_errors(reply, reader):
                async with aclosing(_parts(reply, reader)) as parts:
                    async for part in parts:
                        yield part
                message = reader.message()
            await reply.drain()
        yield Finished(message=message)

    async def embed(self, request: EmbeddingRequest, ctx: PluginContext) -> Embeddings:
        """Return the vectors of texts. See ``EmbeddingProvider.embed``."""
        access = await self._access(ctx)
        body = to_json({"model": request.model, "input": request.texts, "encoding_format": "float"})
        call = self._call(access, self._path("/embeddings", request.model, access), JsonPieces((Fragment(body),)))
        connections: ServiceConnections = ctx.state
        async with connections.exchange(call) as reply:
            await reply.check()
            text = await reply.text(_MAX_EMBEDDINGS_BYTES)
        try:
            return embeddings_of(_parsed(text, reply), len(request.texts))
        except Malformed as error:
            raise broken(access, str(error), retryable=False) from None

    async def _access(self, ctx: PluginContext) -> ServiceAccess:
        access = await find_access(
            model_service(self.service, environment=self.environment),
            ctx,
            provider=self.name,
            base_url=self.service.base_url,
            key=self.service.key,
            headers=self.service.headers,
            keyless=self.is_guessed,
        )
        if not self.is_guessed:
            return access
        # Whatever listens on a well-known port must not receive a key. A configured service may.
        table = f"[plugins.openai.services.{self.name.removeprefix('openai-')}]"
        hint = (
            f'configure the server: base_url = "{access.address.url}" in {table}, and store its key with '
            f"`sideband secrets set {self.name} --origin {access.address.origin}`"
        )
        return evolve(access, key_hint=hint)

    def _prepared(self, request: ModelRequest, access: ServiceAccess) -> tuple[str, JsonPieces, _ResponseReader]:
        official = is_official(access.address) or self.service.api_version is not None
        read_text = self.service.text_calls and not official
        if self._speaks_responses(request, access):
            body = responses_body(request, self.name, official=official, summaries=self.service.summaries)
            return "/responses", body, ResponsesReader(request, read_text=read_text)
        body = chat_body(request, self.name, official=official)
        return self._path("/chat/completions", request.model, access), body, ChatReader(request, read_text=read_text)

    def _speaks_responses(self, request: ModelRequest, access: ServiceAccess) -> bool:
        if self.service.api == "auto":
            # Responses supports neither `stop` nor audio.
            return is_official(access.address) and not request.stop and not has_audio(request)
        return self.service.api == "responses"

    def _path(self, path_of_call: str, model: str, access: ServiceAccess) -> str:
        if self.service.api_version is None:
            return path_of_call
        path = access.address.path
        resource = "" if path.endswith("/openai") else "/openai"
        deployment = "" if "/deployments/" in path else f"{resource}/deployments/{quote(model, safe='')}"
        return f"{deployment}{path_of_call}?{urlencode({'api-version': self.service.api_version})}"

    def _call(self, access: ServiceAccess, path: str, body: JsonPieces) -> ServiceRequest:
        return ServiceRequest(
            access,
            path,
            body,
            connect_timeout=self.service.connect_timeout,
            idle_timeout=self.service.idle_timeout,
            largest=_MAX_STREAM_BYTES,
        )

    async def _listed(self, access: ServiceAccess, connections: ServiceConnections) -> Sequence[ModelInfo]:
        request = ServiceRequest(
            access,
            "/models",
            connect_timeout=min(self.service.connect_timeout, _LISTING_SECONDS),
            idle_timeout=min(self.service.idle_timeout, _LISTING_SECONDS),
        )
        async with connections.exchange(request) as reply:
            await reply.check()
            text = await reply.text(_MAX_JSON_BYTES)
        try:
            data = parse_json(text)
        except ValueError:
            raise not_a_model(access, "invalid JSON", text, reply.headers) from None
        return listed_models(data, official=is_official(access.address), free=self.is_guessed)


async def _parts(reply: ServiceReply, reader: _ResponseReader) -> AsyncGenerator[StreamEvent, None]:
    if await reply.is_json():
        # Some servers do not stream every response, or send errors in this form.
        for part in reader.feed_data(_parsed(await reply.text(_MAX_JSON_BYTES), reply)):
            yield part
        reader.is_done = True
        return
    async with aclosing(read_events(reply.chunks)) as events:
        try:
            async for event in events:
                for part in reader.feed(event):
                    yield part
                if reader.is_done:
                    return
        except EventStreamCut:
            # Some servers omit the last newline. The reader decides whether the response is complete.
            return


def _parsed(text: str, reply: ServiceReply) -> dict[str, Any]:
    try:
        data = parse_json(text)
    except ValueError as error:
        raise Malformed(f"invalid JSON in the response: {error}") from None
    if not isinstance(data, dict):
        raise not_a_model(reply.access, "unexpected JSON", text[:_MAX_ERROR_CHARACTERS], reply.headers)
    return data


@contextmanager
def _converted_errors(reply: ServiceReply, reader: _ResponseReader) -> Iterator[None]:
    """Convert exceptions of the readers to provider errors, which carry the usage reported so far."""
    try:
        try:
            yield
        except ReportedError as error:
            raise refused_inside(reply.access, error.error, reply.headers) from None
        except (Malformed, EventStreamError) as error:
            is_whole = isinstance(error, Malformed) and error.is_whole
            raise broken(reply.access, str(error), retryable=not is_whole) from None
    except ProviderError as error:
        error.usage = reader.usage
        raise
