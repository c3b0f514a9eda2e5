"""One service as a provider of models."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from attrs import define
from sideband.event_streams import EventStreamCut, EventStreamError, ServerSentEvent, read_events
from sideband.messages import AssistantMessage
from sideband.plugins import PluginContext
from sideband.providers import Finished, ModelInfo, ModelRequest, ProviderError, StreamEvent
from sideband.strict_json import compact, parse_json, whole_characters

from ._access import Access
from ._answer import ErrorInside, Malformed
from ._chat_request import chat_body
from ._chat_stream import ChatReader
from ._config import Service
from ._errors import broken, not_a_model, not_supported, refused, refused_inside
from ._keys import find_access
from ._model_list import listed_models
from ._responses_request import responses_body
from ._responses_stream import ResponsesReader
from ._transport import Answer, Call, Connections

__all__ = ["OpenAIProvider"]

_LONGEST_ERROR = 64 << 10
_LONGEST_ANSWER = 16 << 20
_LISTING_SECONDS = 30.0


class _Reader(Protocol):
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
    service: Service
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
        connections: Connections = ctx.state
        content = whole_characters(compact(body)).encode()
        async with connections.exchange(self._call(access, path, content)) as answer:
            await _check(access, answer)
            with _translated(access, answer):
                async with aclosing(_parts(access, answer, reader)) as parts:
                    async for part in parts:
                        yield part
                message = reader.message()
            await answer.drain()
        yield Finished(message=message)

    async def _access(self, ctx: PluginContext) -> Access:
        return await find_access(self.name, self.service, ctx, environment=self.environment, keyless=self.is_guessed)

    def _prepared(self, request: ModelRequest, access: Access) -> tuple[str, dict[str, Any], _Reader]:
        official = access.address.is_official or self.service.api_version is not None
        if self._speaks_responses(request, access):
            if request.stop:
                raise not_supported(access, "Responses has no `stop` texts", 'use Chat Completions: `api = "chat"`')
            body = responses_body(request, self.name, official=official, summaries=self.service.summaries)
            return "/responses", body, ResponsesReader(request, read_text=not official)
        body = chat_body(request, official=official)
        return self._chat_path(request.model, access), body, ChatReader(request, read_text=not official)

    def _speaks_responses(self, request: ModelRequest, access: Access) -> bool:
        if self.service.api == "auto":
            # Responses has no texts that end an answer.
            return access.address.is_official and not request.stop
        return self.service.api == "responses"

    def _chat_path(self, model: str, access: Access) -> str:
        if self.service.api_version is None:
            return "/chat/completions"
        path = access.address.path
        resource = "" if path.endswith("/openai") else "/openai"
        deployment = "" if "/deployments/" in path else f"{resource}/deployments/{quote(model, safe='')}"
        return f"{deployment}/chat/completions?{urlencode({'api-version': self.service.api_version})}"

    def _call(self, access: Access, path: str, content: bytes) -> Call:
        seconds = {"connect": self.service.connect_timeout, "idle": self.service.idle_timeout}
        return Call(access, "POST", path, content, **seconds)

    async def _listed(self, access: Access, connections: Connections) -> Sequence[ModelInfo]:
        service = self.service
        call = Call(
            access,
            "GET",
            "/models",
            connect=min(service.connect_timeout, _LISTING_SECONDS),
            idle=min(service.idle_timeout, _LISTING_SECONDS),
        )
        async with connections.exchange(call) as answer:
            await _check(access, answer)
            text = await answer.text(_LONGEST_ANSWER)
        try:
            data = parse_json(text)
        except ValueError:
            raise not_a_model(access, "something that is no JSON", text, answer.headers) from None
        return listed_models(data, official=access.address.is_official, free=self.is_guessed)


async def _check(access: Access, answer: Answer) -> None:
    """Refuse what is no answer of a model already by its head."""
    is_compressed = answer.headers.get("content-encoding", "").strip().lower() not in {"", "identity"}
    if answer.status != 200:
        said = "" if is_compressed else await answer.text(_LONGEST_ERROR)
        raise refused(access, answer.status, said, answer.headers)
    if is_compressed:
        raise broken(access, "the answer is compressed, which was not asked for")
    if answer.kind in {"text/html", "application/xhtml+xml"}:
        raise not_a_model(access, "a web page", await answer.text(_LONGEST_ERROR), answer.headers)


async def _parts(access: Access, answer: Answer, reader: _Reader) -> AsyncGenerator[StreamEvent, None]:
    if answer.kind == "application/json":
        # Some servers do not stream everything, and tell errors in this way.
        for part in reader.feed_data(_whole(access, await answer.text(_LONGEST_ANSWER), answer)):
            yield part
        return
    async with aclosing(read_events(answer.chunks)) as events:
        try:
            async for event in events:
                for part in reader.feed(event):
                    yield part
                if reader.is_done:
                    return
        except EventStreamCut:
            # Some servers leave out the last line end. Whether the answer is whole is for the reader to say.
            return


def _whole(access: Access, text: str, answer: Answer) -> dict[str, Any]:
    try:
        data = parse_json(text)
    except ValueError as error:
        raise Malformed(f"the answer is no JSON: {error}") from None
    if not isinstance(data, dict):
        raise not_a_model(access, "something else", text[:_LONGEST_ERROR], answer.headers)
    return data


@contextmanager
def _translated(access: Access, answer: Answer) -> Iterator[None]:
    """Turn what the readers raise into the errors of providers."""
    try:
        yield
    except ErrorInside as error:
        raise refused_inside(access, error.error, answer.headers) from None
    except (Malformed, EventStreamError) as error:
        raise broken(access, str(error)) from None
