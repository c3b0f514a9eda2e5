"""The loop of turns: a model step, the tools that it asks for, and again, until nothing is asked for any more.

It goes by what the session holds, so that a run that was cut off anywhere goes on by entering the loop again.
"""

from __future__ import annotations

import anyio
from attrs import define, field
from sideband.broker import Redaction
from sideband.hooks import MessageEnd, TurnEnd, TurnStart
from sideband.messages import AssistantMessage, ToolCallPart, to_data

from ._announcer import Announcer
from ._compaction import Compactor
from ._errors import RunParked
from ._history import VisibleHistory, unanswered
from ._model_steps import ModelSteps
from ._queues import Queues, user_message
from ._run import Run
from ._spending import Spending
from ._tools import LongResults, ToolCalls, TurnAnswers
from .sessions import MessageEntry, Session


@define(eq=False)
class TurnLoop:
    """Runs turns in one session.

    Args:
        session: keeps what is said.
        history: what the model sees of it.
        steps: makes model steps.
        tools: answers tool calls.
        results: keeps results that are too long for the model.
        compactor: makes the conversation shorter between turns.
        queues: what is said while the run goes on.
        spending: notes what is used.
        announcer: tells what happens.
        redactor: takes secrets out of what is queued.
        most: how many turns a run may have.
    """

    session: Session = field(repr=False)
    history: VisibleHistory = field(repr=False)
    steps: ModelSteps = field(repr=False)
    tools: ToolCalls = field(repr=False)
    results: LongResults = field(repr=False)
    compactor: Compactor = field(repr=False)
    queues: Queues = field(repr=False)
    spending: Spending = field(repr=False)
    announcer: Announcer = field(repr=False)
    redactor: Redaction = field(repr=False)
    most: int

    async def go(self, run: Run) -> None:
        """Run turns until the model has nothing more to ask for.

        Raises:
            SidebandError: the run can't go on; what was said and done until then is stored.
        """
        if self._is_done():
            return
        while await self._turn(run):
            pass

    def _is_done(self) -> bool:
        messages = self.history.stored()
        last = messages[-1] if messages else None
        return isinstance(last, AssistantMessage) and not last.tool_calls and not self.queues.steering

    async def _turn(self, run: Run) -> bool:
        """One turn; whether another one follows."""
        if run.turn >= self.most:
            raise RunParked(
                f"the run has had {self.most} turns",
                hint="look at what it does, then go on with --resume; `turns` under `[agent]` sets the limit",
                code="agent.turns",
            )
        self.spending.charge_time()
        self.spending.allowance.check("money", "tokens", "seconds")
        index, run.turn = run.turn, run.turn + 1
        await self.announcer.tell(TurnStart(run.id, index))
        pending = unanswered(self.history.stored())
        message, calls = pending or await self._said(run)
        answers = await self._answer(run, message, calls, asked_before=pending is not None) if calls else None
        results = [to_data(one) for one in answers.messages] if answers else []
        await self.announcer.tell(TurnEnd(run.id, index, to_data(message), results))
        if answers is not None and answers.halt is not None:
            raise answers.halt
        goes_on = answers is not None and not answers.terminate
        return goes_on or bool(self.queues.steering)

    async def _said(self, run: Run) -> tuple[AssistantMessage, tuple[ToolCallPart, ...]]:
        """What the model says now, and which tool calls it makes."""
        await self._take_steering(run)
        await self.compactor.compact_if_due(run)
        message = await self.steps.step(run, str(run.step))
        self.spending.charge_answer(message.usage)
        run.usage += message.usage
        with anyio.CancelScope(shield=True):  # it was paid for, and may not be lost between here and the disk
            await self.session.append_message(message, run=run.id, step=str(run.step))
        run.messages.append(message)
        run.step += 1
        await self.announcer.tell(MessageEnd(to_data(message)))
        return message, message.tool_calls

    async def _answer(
        self, run: Run, message: AssistantMessage, calls: tuple[ToolCallPart, ...], *, asked_before: bool
    ) -> TurnAnswers:
        # All results together must fit the window: what was just answered can't be compacted.
        self.results.limit(await self.compactor.window(run.model) // 2 // len(calls))
        step = str(run.step - 1)
        numbered = [(message.tool_calls.index(call), call) for call in calls]
        answers = await self.tools.answer(numbered, step, asked_before=asked_before)
        with anyio.CancelScope(shield=True):
            await self.session.append(
                *(
                    MessageEntry(message=one, run=run.id, step=f"{step}.{index}")
                    for one, (index, _) in zip(answers.messages, numbered, strict=True)
                )
            )
        self.tools.settle()
        run.messages.extend(answers.messages)
        for one in answers.messages:
            await self.announcer.tell_message(one)
        return answers

    async def _take_steering(self, run: Run) -> None:
        """Store what is queued now. A message leaves the queue once it is stored, and not before: none may be lost."""
        steering = self.queues.steering
        for _ in range(len(steering)):
            text = self.redactor.text(steering[0].text)
            message = user_message(text, steering[0].attachments, source=steering[0].source)
            with anyio.CancelScope(shield=True):
                await self.session.append_message(message, run=run.id, step=str(run.step))
            steering.popleft()
            run.messages.append(message)
            await self.announcer.tell_message(message)
