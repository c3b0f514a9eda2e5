"""The session of one client: an agent without a model, whose tool calls the client makes."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskGroup, TaskStatus
from attrs import define, field, frozen
from sideband.approvals import Approval, ApprovalRequest
from sideband.asking import UserAnswer, UserQuestion
from sideband.errors import SidebandError
from sideband.hooks import ObserveEvent, ToolExecutionUpdate
from sideband.ops import Origin
from sideband.tools import ToolView
from sideband_agent import Agent, DirectCalls
from sideband_serving import Unanswered, answers_of, approval_form, approval_of, questions_form

from ._held_calls import HeldCall
from ._offer import Offer

if TYPE_CHECKING:
    from sideband import Host

_SOURCE_SECONDS = 30.0
_log = logging.getLogger("sideband.mcp")


@frozen
class Limits:
    """The limits of a server.

    Attributes:
        sessions: the maximum number of clients at the same time.
        calls: the maximum number of calls of one client at the same time.
        body: the maximum size of one message in bytes.
        idle_seconds: a client that was silent for so long is forgotten, if it has no connection of its own.
        run_seconds: a call that comes so long after the last one begins a new run for the guards that count in it.
        question_seconds: how long a question to the user of a client waits for its answer.
    """

    sessions: int = 32
    calls: int = 16
    body: int = 4 << 20
    idle_seconds: float = 1_800.0
    run_seconds: float = 60.0
    question_seconds: float = 600.0


class TooManyCalls(Exception):
    """The client has too many calls in progress."""


@define(eq=False)
class ClientSession:
    """The session of a client.

    Attributes:
        host: the host.
        offer: what clients are offered.
        limits: the limits.
        client: the name of the client, for records.
        asks: whether the client can ask its user; otherwise what needs an approval is refused.
        idle_seconds: the time without calls after which it ends; ``None`` if it lasts as long as its connection.
        yes: whether the host answers what needs an approval, and the client is not asked about it.
        ended: set once it has ended.
    """

    host: Host = field(repr=False)
    offer: Offer
    limits: Limits
    client: str
    asks: bool
    idle_seconds: float | None
    yes: bool = False
    ended: anyio.Event = field(factory=anyio.Event, repr=False)
    _agent: Agent | None = field(default=None, init=False, repr=False)
    _calls: DirectCalls | None = field(default=None, init=False, repr=False)
    _tasks: TaskGroup | None = field(default=None, init=False, repr=False)
    _held: dict[str, HeldCall] = field(factory=dict, init=False, repr=False)
    _closing: bool = field(default=False, init=False)
    _named: bool = field(default=False, init=False)
    _last: float = field(default=0.0, init=False)
    _renewing: anyio.Lock = field(factory=anyio.Lock, init=False, repr=False)
    _renew: anyio.Event = field(factory=anyio.Event, init=False, repr=False)
    _renewed: anyio.Event = field(factory=anyio.Event, init=False, repr=False)

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Keep the session open until it is closed, or idle for too long."""
        agent = Agent(
            self.host,
            tools=self.offer.tools,
            sources=self.offer.sources,
            channel="mcp",
            approver=self._approve if self.asks and not self.yes else None,
            asker=self._ask if self.asks else None,
            approval_mode="assist",  # a client that cannot ask its user must not be free to do more
            on_event=self._note,
        )
        try:
            async with agent, anyio.create_task_group() as self._tasks:
                self._agent, self._last = agent, anyio.current_time()
                started = False
                while not self._closing:
                    self._renew = anyio.Event()
                    async with agent.tool_calls("api") as self._calls:
                        self._renewed.set()
                        if not started:
                            started = True
                            task_status.started()
                        await self._until_due()
        except SidebandError as error:
            if self._agent is None:
                raise
            _log.warning("the session of an MCP client failed: %s", error.message)
        finally:
            self._closing = True
            self.ended.set()
            self._renewed.set()

    async def _until_due(self) -> None:
        """Wait until a new run is due, or the session has been idle for too long."""
        while not self._renew.is_set():
            if self.idle_seconds is None:
                await self._renew.wait()
                return
            left = self._last + self.idle_seconds - anyio.current_time()
            if left <= 0 and not self._active:
                self._closing = True
                return
            with anyio.move_on_after(max(left, 1.0)):
                await self._renew.wait()

    def close(self) -> None:
        """End the session. Its calls are cancelled."""
        self._closing = True
        self._renew.set()

    @property
    def is_open(self) -> bool:
        """Whether it takes calls."""
        return not self._closing

    @property
    def agent(self) -> Agent:
        """Its agent."""
        assert self._agent is not None  # noqa: S101  set before the session is returned
        return self._agent

    async def tools(self) -> ToolView:
        """Return the tools that the client may call."""
        self._last = anyio.current_time()
        if self.offer.has_sources:
            with anyio.move_on_after(_SOURCE_SECONDS):
                await self.agent.wait_for_sources()
        return self.agent.tools

    async def begin(self, tool: str, arguments: Mapping[str, Any]) -> HeldCall:
        """Begin a tool call.

        Raises:
            TooManyCalls: if the client has too many in progress.
            SidebandError: if the session has ended.
        """
        self._forget()
        if len(self._held) >= self.limits.calls:
            raise TooManyCalls
        calls = await self._current()
        if not self._named:
            self._named = True
            await self.agent.session.rename(f"MCP client {self.client}")
        call = calls.start(tool, arguments)
        held = self._held[call.id] = HeldCall(call, self.limits.question_seconds)
        assert self._tasks is not None  # noqa: S101  set before the session is returned
        self._tasks.start_soon(held.watch)
        return held

    def held(self, call: str) -> HeldCall | None:
        """Return a call that has a question, or whose result was not fetched."""
        return self._held.get(call)

    def drop(self, held: HeldCall, reason: str = "") -> None:
        """Forget a call, and cancel it if it has no result."""
        self._last = anyio.current_time()
        if not held.ended:
            held.call.cancel(reason)
        self._held.pop(held.call.id, None)

    def _forget(self) -> None:
        """Forget the oldest calls whose results no client has fetched, so that they do not count for ever."""
        done = [one for one in self._held.values() if one.ended]
        for one in done[: max(0, len(self._held) - self.limits.calls + 1)]:
            self.drop(one)

    @property
    def _active(self) -> bool:
        return any(not one.ended for one in self._held.values())

    async def _current(self) -> DirectCalls:
        """Return the run of the next call."""
        async with self._renewing:
            now = anyio.current_time()
            is_old = not self._active and now - self._last > self.limits.run_seconds
            if self._calls is None or self._calls.ended or is_old:
                self._renewed = anyio.Event()
                self._renew.set()
                await self._renewed.wait()
            self._last = now
        assert self._calls is not None  # noqa: S101  set before the event
        return self._calls

    def _note(self, event: ObserveEvent) -> None:
        if isinstance(event, ToolExecutionUpdate) and (held := self._held.get(event.id)) is not None:
            held.report(event)

    def _asking(self, origin: Origin) -> HeldCall:
        """Return the call that has caused a question.

        Raises:
            Unanswered: if none of the client's calls has.
        """
        # A child agent works for a call, whose key is `session:run:step`.
        place = origin.parent.rsplit(":", 2)[1:] if origin.parent else [origin.run or "", origin.step or ""]
        for held in self._held.values():
            if [held.call.run, held.call.step] == place and not held.ended:
                return held
        raise Unanswered("no call of the client has asked this")

    async def _approve(self, request: ApprovalRequest) -> Approval:
        content = await self._asking(request.origin).ask(approval_form(request))
        return approval_of(content, f"the MCP client {self.client}")

    async def _ask(self, questions: Sequence[UserQuestion], origin: Origin) -> tuple[UserAnswer, ...]:
        form = questions_form(questions, origin.tool or "")
        return answers_of(questions, await self._asking(origin).ask(form))
