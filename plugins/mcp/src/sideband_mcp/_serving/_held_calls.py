"""Tool calls of clients, and what they ask meanwhile.

A newer client answers a question by repeating its request. So a call is held apart from the request that began it.
"""

from __future__ import annotations

from math import inf, nextafter
from secrets import token_hex
from typing import Any

import anyio
from attrs import define, field
from sideband.hooks import ToolExecutionUpdate
from sideband.messages import ToolResultMessage
from sideband_agent import DirectCall
from sideband_serving import Form, Unanswered

_MAX_REPORTS = 256

Report = tuple[float, float | None, str | None]
"""The progress of a call: how much, of how much, and a text."""


@define(eq=False)
class ClientQuestion:
    """A question to the user of a client, until it is answered or not needed any more.

    Attributes:
        form: what is shown.
        id: its id among the questions of the call.
        done: set once it needs no answer.
    """

    form: Form
    id: str = field(factory=lambda: token_hex(8))
    done: anyio.Event = field(factory=anyio.Event, repr=False)
    _content: dict[str, Any] | None = field(default=None, init=False, repr=False)
    _problem: str = field(default="", init=False)

    def answer(self, content: dict[str, Any]) -> None:
        """Answer with the values of the form."""
        self._content = content
        self.done.set()

    def fail(self, problem: str) -> None:
        """Say why there is no answer."""
        self._problem = problem
        self.done.set()

    async def wait(self, seconds: float) -> dict[str, Any]:
        """Wait for the values of the form.

        Raises:
            Unanswered: if the client has no answer, or gives none in time.
        """
        with anyio.move_on_after(seconds):
            await self.done.wait()
        if self._content is None:
            raise Unanswered(self._problem or f"the user of the client did not answer within {seconds:g} s")
        return self._content


@define(eq=False)
class HeldCall:
    """A tool call of a client.

    Attributes:
        call: the call in the session.
        seconds: how long a question waits for its answer.
        asked: the question that waits for its answer, if there is one.
        ended: whether its result is known.
    """

    call: DirectCall
    seconds: float
    asked: ClientQuestion | None = field(default=None, init=False)
    ended: bool = field(default=False, init=False)
    _events: list[ClientQuestion | ToolResultMessage | Exception] = field(factory=list, init=False, repr=False)
    _news: anyio.Event = field(factory=anyio.Event, init=False, repr=False)
    _turn: anyio.Lock = field(factory=anyio.Lock, init=False, repr=False)
    _reports: list[Report] = field(factory=list, init=False, repr=False)
    _reported: anyio.Event = field(factory=anyio.Event, init=False, repr=False)
    _progress: float = field(default=0.0, init=False)

    async def watch(self) -> None:
        """Note the result of the call, once it has ended."""
        try:
            self._add(await self.call.answer())
        except Exception as error:  # noqa: BLE001  raised where the result is awaited
            self._add(error)
        finally:
            self.ended = True
            self._reported.set()

    async def ask(self, form: Form) -> dict[str, Any]:
        """Ask the user of the client, one question at a time.

        Raises:
            Unanswered: if there is no answer.
        """
        async with self._turn:
            question = self.asked = ClientQuestion(form)
            self._add(question)
            try:
                return await question.wait(self.seconds)
            finally:
                self.asked = None
                question.done.set()

    async def next(self) -> ClientQuestion | ToolResultMessage:
        """Wait for the next question, or for the result.

        Raises:
            SidebandError: if the call failed without a result.
        """
        while not self._events:
            await self._news.wait()
        event = self._events[0]
        if isinstance(event, ClientQuestion):
            del self._events[0]
        elif isinstance(event, Exception):
            raise event
        return event

    def repeat(self) -> None:
        """Ask the question that waits for its answer again, for a client that came back without one."""
        if self.asked is not None:
            self._add(self.asked)

    def report(self, event: ToolExecutionUpdate) -> None:
        """Note progress. A value is larger than the one before, as clients expect."""
        known = event.current is not None and event.current > self._progress
        self._progress = float(event.current or 0.0) if known else nextafter(self._progress, inf)
        if len(self._reports) < _MAX_REPORTS:
            self._reports.append((self._progress, event.total, event.message))
        else:
            self._reports[-1] = (self._progress, event.total, event.message)
        self._reported.set()

    async def reports(self) -> list[Report]:
        """Wait for progress, and return it; nothing once the call has ended."""
        if not self._reports and not self.ended:
            await self._reported.wait()
        if not self.ended:
            self._reported = anyio.Event()
        found, self._reports = self._reports, []
        return found

    def _add(self, event: ClientQuestion | ToolResultMessage | Exception) -> None:
        self._events.append(event)
        self._news.set()
        self._news = anyio.Event()
