"""One service as a provider of models."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from attrs import define
from sideband.messages import AssistantMessage
from sideband.plugins import PluginContext
from sideband.providers import Finished, ModelInfo, ModelRequest, ProviderError, StreamEvent
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

from ._answer import ErrorInside, Malformed
from ._chat_request import chat_body
from ._chat_stream import ChatReader
from ._config import OpenAIService
from ._model_list import listed_models
from ._responses_request import responses_body
from ._responses_stream import ResponsesReader
from ._service import is_official, model_service

_LONGEST_ERROR = 64 << 10
_LONGEST_ANSWER = 16 << 20
# A few characters of text come in an event of some hundred bytes.
_LARGEST_STREAM = 256 << 20
_LISTING_SECONDS = 30.0


class _AnswerReader(Protocol):
    """Reads one answer in one of the protocols."""

    is_done: bool

    def feed(self, event: ServerSentEvent) -> Iterator[StreamEvent]:
        """What an event adds to the answer."""

    def feed_data(self, data: dict[str, Any]) -> Iterable[StreamEvent]:
        """What an answer that was sent as a whole adds."""

    def message(self) -> AssistantMessage:
        """The whole answer."""


@define
class OpenAIProvider:
    """A service.

    Attributes:
        name: the provider's name.
        service: how it is reached.
        environment: whether the usual variables are meant for it.
        is_guessed: whether nobody configured it: a server that may run on this machine. It never gets a key.
    """

    name: str
    service: OpenAIService
    environment: bool = False
    is_guessed: bool = False

    async def models(self, ctx: PluginContext) -> Sequence[ModelInfo]:
        """The models that the server lists. A server that is only guessed may be absent, and then has none."""
        access = await self._access(ctx)
        if self.service.api_version is not None:
            return ()  # Azure does not tell a key which deployments there are
        try:
            return await self._listed(access, ctx.state)
        except ProviderError:
            if self.is_guessed:
                return ()
            raise

    async def stream(self, request: ModelRequest, ctx: PluginContext) -> AsyncGenerator[StreamEvent, None]:
        """Ask a model. See ``Provider.stream``."""
        access = await self._access(ctx)
        path, body, reader = self._prepared(request, access)
        connections: ServiceConnections = ctx.state
        async with connections.exchange(self._call(access, path, body)) as reply:
            await reply.check()
            with _translated(reply):
                async with aclosing(_parts(reply, reader)) as parts:
                    async for part in parts:
                        yield part
                message = reader.message()
            await reply.drain()
        yield Finished(message=message)

    async def _access(self, ctx: PluginContext) -> ServiceAccess:
        return await find_access(
            model_service(self.service, environment=self.environment),
            ctx,
            provider=self.name,
            base_url=self.service.base_url,
            key=self.service.key,
            headers=self.service.headers,
            keyless=self.is_guessed,
        )

    def _prepared(self, request: ModelRequest, access: ServiceAccess) -> tuple[str, dict[str, Any], _AnswerReader]:
        official = is_official(access.address) or self.service.api_version is not None
        if self._speaks_responses(request, access):
            if request.stop:
                hint = 'use Chat Completions: `api = "chat"`'
                raise ProviderError(self.name, "Responses has no `stop` texts", hint=hint, retryable=False)
            body = responses_body(request, self.name, official=official, summaries=self.service.summaries)
            return "/responses", body, ResponsesReader(request, read_text=not official)
        body = chat_body(request, official=official)
        return self._chat_path(request.model, access), body, ChatReader(request, read_text=not official)

    def _speaks_responses(self, request: ModelRequest, access: ServiceAccess) -> bool:
        if self.service.api == "auto":
            # Responses has no texts that end an answer.
            return is_official(access.address) and not request.stop
        return self.service.api == "responses"

    def _chat_path(self, model: str, access: ServiceAccess) -> str:
        if self.service.api_version is None:
            return "/chat/completions"
        path = access.address.path
        resource = "" if path.endswith("/openai") else "/openai"
        deployment = "" if "/deployments/" in path else f"{resource}/deployments/{quote(model, safe='')}"
        return f"{deployment}/chat/completions?{urlencode({'api-version': self.service.api_version})}"

    def _call(self, access: ServiceAccess, path: str, body: dict[str, Any]) -> ServiceRequest:
        return ServiceRequest(
            access,
            path,
            body,
            connect_timeout=self.service.connect_timeout,
            idle_timeout=self.service.idle_timeout,
            largest=_LARGEST_STREAM,
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
            text = await reply.text(_LONGEST_ANSWER)
        try:
            data = parse_json(text)
        except ValueError:
            raise not_a_model(access, "something that is no JSON", text, reply.headers) from None
        return listed_models(data, official=is_official(access.address), free=self.is_guessed)


async def _parts(reply: ServiceReply, reader: _AnswerReader) -> AsyncGenerator[StreamEvent, None]:
    if reply.kind == "application/json":
        # Some servers do not stream everything, and tell errors in this way.
        for part in reader.feed_data(_whole(await reply.text(_LONGEST_ANSWER), reply)):
            yield part
        return
    async with aclosing(read_events(reply.chunks)) as events:
        try:
            async for event in events:
                for part in reader.feed(event):
                    yield part
                if reader.is_done:
                    return
        except EventStreamCut:
            # Some servers leave out the last line end. Whether the answer is whole is for the reader to say.
            return


def _whole(text: str, reply: ServiceReply) -> dict[str, Any]:
    try:
        data = parse_json(text)
    except ValueError as error:
        raise Malformed(f"the answer is no JSON: {error}") from None
    if not isinstance(data, dict):
        raise not_a_model(reply.access, "something else", text[:_LONGEST_ERROR], reply.headers)
    return data


@contextmanager
def _translated(reply: ServiceReply) -> Iterator[None]:
    """Turn what the readers raise into the errors of providers."""
    try:
        yield
    except ErrorInside as error:
        raise refused_inside(reply.access, error.error, reply.headers) from None
    except (Malformed, EventStreamError) as error:
        raise broken(reply.access, str(error)) from None
