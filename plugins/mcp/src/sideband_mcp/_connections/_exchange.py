"""One call of a server while it runs, with what the server asks in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from secrets import token_hex
from typing import Any, Literal

import anyio
from attrs import define, field, frozen
from sideband.ops import OpContext

from .._models import McpAsk

_ANSWER_SECONDS = 3_600.0
"""How long a server waits for an answer at most."""

_MAX_ASKS = 20
"""How often a server may ask during one call."""

current: ContextVar[Exchange | None] = ContextVar("sideband_mcp_exchange", default=None)
"""The exchange for which the running task speaks with a server."""


@frozen
class ServerAnswer:
    """The answer to what a server asked.

    Attributes:
        action: ``accept``, ``decline`` or ``cancel``.
        content: the data of the answer.
    """

    action: Literal["accept", "decline", "cancel"] = "cancel"
    content: dict[str, Any] = field(factory=dict)


@define(eq=False)
class Exchange:
    """A call in the background. Ops wait for its end, or for the next thing that the server asks.

    The op that began it may end before it: the tool then asks a person or a model, and another op brings the answer.

    Args:
        server: the name of the server.
        domain: the trust domain of the caller. No other one may answer.
        session: the session of the caller, or its call without an agent.
        can_answer: whether the caller can answer what the server asks: a skill cannot.

    Attributes:
        id: an id that cannot be guessed.
        scope: cancels it. Its deadline does not include the time of answers. They have a limit of their own: a caller
            that cannot answer must not keep the call for ever.
        ctx: the context of the op that waits, if one does.
        is_shared: whether it goes on while no op waits, so that the session must end it.
    """

    server: str
    domain: str
    session: str
    can_answer: bool = True
    id: str = field(init=False, factory=lambda: token_hex(16))
    scope: anyio.CancelScope = field(init=False, factory=anyio.CancelScope, repr=False)
    ctx: OpContext | None = field(init=False, default=None, repr=False)
    is_shared: bool = field(init=False, default=False)
    _asked: list[McpAsk] = field(init=False, factory=list, repr=False)
    _answers: dict[str, tuple[anyio.Event, list[ServerAnswer]]] = field(init=False, factory=dict, repr=False)
    _asks: int = field(init=False, default=0)
    _left: float = field(init=False, default=0.0)
    _news: anyio.Event = field(init=False, factory=anyio.Event, repr=False)
    _result: Any = field(init=False, default=None, repr=False)
    _error: Exception | None = field(init=False, default=None, repr=False)
    _ended: bool = field(init=False, default=False)

    @classmethod
    def of(cls, server: str, ctx: OpContext) -> Exchange:
        """Return a new exchange of the caller of an op."""
        return cls(server, ctx.domain, _session(ctx), ctx.origin.skill is None)

    def belongs_to(self, ctx: OpContext) -> bool:
        """Return whether the caller of an op began it."""
        return (self.domain, self.session) == (ctx.domain, _session(ctx))

    @property
    def has_ended(self) -> bool:
        """Whether its result or error is known."""
        return self._ended

    async def run(self, work: Callable[[], Awaitable[Any]]) -> None:
        """Do the work of the call, and keep its result or error for the op that waits."""
        token = current.set(self)
        try:
            with self.scope:
                self._result = await work()
        except Exception as error:  # noqa: BLE001  the op that waits raises it
            self._error = error
        finally:
            current.reset(token)
            self._ended = True
            for ask in tuple(self._answers):
                self.answer(ask, ServerAnswer())
            self._tell()

    async def next(self, ctx: OpContext) -> McpAsk | Any:
        """Return what the server asks next, or the result. An op that is cancelled here cancels the call.

        Raises:
            Exception: the error of the call.
        """
        self.ctx = ctx
        try:
            while not (self._asked or self._ended):
                await self._news.wait()
        except BaseException:
            self.scope.cancel()
            raise
        finally:
            self.ctx = None
        if self._asked and not self._ended:  # a person must not be asked for a call that has its result
            return self._asked.pop(0)
        if self._error is not None:
            raise self._error
        return self._result

    async def ask(self, one: McpAsk) -> ServerAnswer | None:
        """Pass on what the server asks, and return the answer; ``None`` if it asks too often, or after the call."""
        self._asks += 1
        if not self.can_answer:
            return ServerAnswer("decline")
        if self._ended or self._asks > _MAX_ASKS:
            return None
        if not self._answers:
            now = anyio.current_time()
            self._left, self.scope.deadline = self.scope.deadline - now, now + _ANSWER_SECONDS
        answered, answers = self._answers.setdefault(one.id, (anyio.Event(), []))
        self._asked.append(one)
        self._tell()
        await answered.wait()
        return answers[0]

    def answer(self, ask: str, answer: ServerAnswer) -> bool:
        """Answer what the server asked. Return ``False`` if it did not ask this, or has its answer."""
        answered, answers = self._answers.pop(ask, (None, []))
        if answered is None:
            return False
        answers.append(answer)
        answered.set()
        if not self._answers:
            self.scope.deadline = anyio.current_time() + self._left
        return True

    async def close(self) -> None:
        """End it. The tool has ended without an answer."""
        self.scope.cancel()

    def _tell(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()


def _session(ctx: OpContext) -> str:
    return ctx.origin.session or f"call {ctx.call}"
