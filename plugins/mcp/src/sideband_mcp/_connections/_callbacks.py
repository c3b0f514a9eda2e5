"""What a client answers to servers during a call: questions to the person, samples of a model, places, messages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import Any

from attrs import field, frozen
from mcp.client.context import ClientRequestContext
from mcp_types import (
    INVALID_REQUEST,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    ListRootsResult,
    LoggingMessageNotificationParams,
    Root,
    TextContent,
)

from .._config import ServerConfig
from .._models import McpAsk
from ._exchange import Exchange, current

_LOGGED = frozenset({"warning", "error", "critical", "alert", "emergency"})


@frozen
class Callbacks:
    """The callbacks of one connection.

    Args:
        settings: the table of the server.
        exchanges: returns the exchanges that use the connection.
    """

    settings: ServerConfig = field(repr=False)
    exchanges: Callable[[], list[Exchange]] = field(repr=False)

    def options(self) -> dict[str, Any]:
        """Return the arguments for the client. It announces only what is configured."""
        sampling = {"sampling_callback": self.sample} if self.settings.sampling else {}
        roots = {"list_roots_callback": self.roots} if self.settings.command else {}
        return {"elicitation_callback": self.elicit, "logging_callback": self.log, **sampling, **roots}

    async def elicit(self, _: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        """Let the tool ask the person."""
        if isinstance(params, ElicitRequestFormParams):
            ask = McpAsk(id=token_hex(8), kind="form", message=params.message, form=params.requested_schema)
        else:
            ask = McpAsk(id=token_hex(8), kind="address", message=params.message, address=params.url)
        exchange = self._exchange()
        if exchange is None:
            return _UNASKED
        answer = await exchange.ask(ask)
        if answer is None:
            return _TOO_OFTEN
        content = answer.content if answer.action == "accept" and ask.kind == "form" else None
        return ElicitResult(action=answer.action, content=content)

    async def sample(
        self, _: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        """Let the tool ask a model."""
        exchange = self._exchange()
        if exchange is None:
            return _UNASKED
        request = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        answer = await exchange.ask(McpAsk(id=token_hex(8), kind="sample", message="", sample=request))
        if answer is None:
            return _TOO_OFTEN
        if answer.action != "accept":
            return ErrorData(code=-1, message="the user or the client refused to ask a model")
        content = TextContent(type="text", text=str(answer.content.get("text", "")))
        model, reason = str(answer.content.get("model", "")), str(answer.content.get("stop", "endTurn"))
        return CreateMessageResult(role="assistant", content=content, model=model, stop_reason=reason)

    async def roots(self, _: ClientRequestContext) -> ListRootsResult:
        """Return the places of a program."""
        return ListRootsResult(roots=[_root(one) for one in (*self.settings.write, *self.settings.read)])

    async def log(self, params: LoggingMessageNotificationParams) -> None:
        """Show a message of the server as progress of its call."""
        exchange = self._exchange()
        if exchange is not None and exchange.ctx is not None and params.level in _LOGGED:
            await exchange.ctx.progress(message=f"{params.level}: {params.data}")

    def _exchange(self) -> Exchange | None:
        """Return the exchange for which the server asks.

        Older versions of the protocol do not say it. If several sessions use the connection, the request is refused,
        because a server could let the wrong person answer.
        """
        found = current.get()
        if found is not None:
            return found
        running = self.exchanges()
        return running[-1] if len({(one.domain, one.session) for one in running}) == 1 else None


def _root(place: str) -> Root:
    path = Path(place).expanduser().absolute()
    return Root(uri=path.as_uri(), name=path.name)


_TOO_OFTEN = ErrorData(code=INVALID_REQUEST, message="the call has ended, or asked too often")
_UNASKED = ErrorData(code=INVALID_REQUEST, message="only a call of one session may ask its user")
