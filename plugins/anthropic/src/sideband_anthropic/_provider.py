"""The provider: asks the Messages API, and reads its answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any
from urllib.parse import quote

from attrs import define, field
from sideband.messages import Usage
from sideband.plugins import PluginContext
from sideband.providers import Finished, ModelInfo, ModelRequest, ProviderRefused, StreamEvent
from sideband.strict_json import compact, parse_object

from ._config import Config
from ._errors import broken, refused, stream_error
from ._keys import Access, find_access
from ._messages import has_thoughts
from ._models import Model, described, known_model, known_models, with_aliases
from ._request import request_body
from ._stream import Answer
from ._transport import Reply, Transport
from ._version import __version__

__all__ = ["Anthropic"]

_LARGEST_LIST = 4 << 20
_MOST_PAGES = 20
_NO_SUCH_PATH = frozenset({404, 405, 501})


@define(eq=False)
class Anthropic:
    """The provider. ``state`` of its plugin is the ``Transport``.

    Attributes:
        name: what stands before the colon in ``anthropic:claude-opus-5``.
    """

    name: str = "anthropic"
    _models: dict[str, Model] = field(factory=dict, init=False)

    async def models(self, ctx: PluginContext) -> Sequence[ModelInfo]:
        """The models that the key may use; those of the data file if the service has no list.

        Raises:
            ProviderError: it can't be asked; ``ProviderUnconfigured`` if there is no key.
        """
        access = await find_access(self.name, ctx)
        try:
            listed = with_aliases([described(entry) async for entry in self._listed(access, ctx)])
        except ProviderRefused as error:
            if error.status not in _NO_SUCH_PATH:
                raise
            listed = known_models()
        self._models = {model.id: model for model in listed}
        return [model.info for model in listed]

    async def stream(self, request: ModelRequest, ctx: PluginContext) -> AsyncIterator[StreamEvent]:
        """Ask a model. See ``Provider.stream``."""
        access = await find_access(self.name, ctx)
        model = self._models.get(request.model) or known_model(request.model)
        async with self._asked(request, model, access, ctx) as reply:
            answer = Answer(self.name, reply.headers)
            async with aclosing(answer.read(reply.chunks())) as events:
                async for event in events:
                    yield event
        message = answer.message()
        cost = model.cost(message.usage)
        if cost is not None:
            usage = Usage.model_validate({**message.usage.model_dump(), "cost": cost})
            message = message.model_copy(update={"usage": usage})
        yield Finished(message=message)

    @asynccontextmanager
    async def _asked(
        self, request: ModelRequest, model: Model, access: Access, ctx: PluginContext
    ) -> AsyncIterator[Reply]:
        """The answer, which has begun well.

        The service takes thoughts back only unchanged, from the same model, and after the same words. It is asked
        again without them if it refuses them: what a model thought is worth less than a conversation that goes on.
        """
        config: Config = ctx.config
        for thoughts in (True, False):
            body = request_body(request, model, provider=self.name, cache=config.cache, thoughts=thoughts)
            async with self._exchange("POST", "/v1/messages", access, ctx, body) as reply:
                error = await self._refusal(reply, access)
                if error is None:
                    yield reply
                    return
            if not (thoughts and has_thoughts(body["messages"]) and _is_about_thoughts(error)):
                raise error

    async def _refusal(self, reply: Reply, access: Access) -> ProviderRefused | None:
        if not 200 <= reply.status < 300:
            return refused(self.name, reply.status, await reply.text(), reply.headers, origin=access.address.origin)
        kind = reply.headers.get("content-type", "text/event-stream").partition(";")[0].strip().lower()
        if kind not in {"application/json", "text/html"}:
            return None
        text = await reply.text()
        try:
            error = parse_object(text).get("error")
        except ValueError:
            error = None
        if error is None:
            raise broken(self.name, f"the answer is `{kind}`, and no stream of events")
        return stream_error(self.name, text, error, reply.headers)

    async def _listed(self, access: Access, ctx: PluginContext) -> AsyncIterator[dict[str, Any]]:
        after = ""
        for _ in range(_MOST_PAGES):
            page = await self._page(f"/v1/models?limit=1000{after}", access, ctx)
            entries = page.get("data")
            for entry in entries if isinstance(entries, list) else []:
                if isinstance(entry, dict) and isinstance(entry.get("id"), str) and entry.get("lifecycle") != "retired":
                    yield entry
            last = page.get("last_id")
            if page.get("has_more") is not True or not isinstance(last, str):
                return
            after = f"&after_id={quote(last, safe='')}"

    async def _page(self, path: str, access: Access, ctx: PluginContext) -> dict[str, Any]:
        async with self._exchange("GET", path, access, ctx) as reply:
            text = await reply.text(_LARGEST_LIST)
            if not 200 <= reply.status < 300:
                raise refused(self.name, reply.status, text, reply.headers, origin=access.address.origin)
        try:
            return parse_object(text)
        except ValueError as error:
            raise broken(self.name, f"the list of models can't be read: {error}") from error

    @asynccontextmanager
    async def _exchange(
        self, method: str, path: str, access: Access, ctx: PluginContext, body: Mapping[str, Any] | None = None
    ) -> AsyncIterator[Reply]:
        config: Config = ctx.config
        transport: Transport = ctx.state
        headers = {
            "user-agent": f"sideband-anthropic/{__version__}",
            **config.headers,
            "accept": "application/json" if body is None else "text/event-stream",
            "anthropic-version": config.version,
            **({"anthropic-beta": ",".join(config.betas)} if config.betas else {}),
            **access.headers,
        }
        content = None
        if body is not None:
            headers["content-type"] = "application/json"
            content = compact(body).encode()
        address = access.address
        async with transport.exchange(method, address.url(path), address.origin, headers, content) as reply:
            yield reply


def _is_about_thoughts(error: ProviderRefused) -> bool:
    said = error.body.lower()
    return error.status == 400 and ("thinking" in said or "bound to a different conversation" in said)
