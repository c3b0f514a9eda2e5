"""The turn loop: a model step, then the tool calls that it requests, until no more are requested.

The loop depends only on stored entries, so that an interrupted run resumes by entering the loop again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
from attrs import define, field
from sideband.broker import Redaction
from sideband.hooks import Answer, HookRegistry, TurnEnd, TurnStart
from sideband.messages import AssistantMessage, ToolCallPart, UserMessage, to_data

from ._announcer import Announcer
from ._compaction import Compactor
from ._errors import RunParked
from ._history import VisibleHistory, unanswered
from ._last_answers import LastAnswers
from ._model_steps import ModelSteps
from ._queue_changes import QueueChanges
from ._queues import Queues, user_message
from ._run import Run
from ._spending import Spending
from ._tools import LongResults, ToolCalls, TurnAnswers
from .sessions import MessageEntry, Session


@define(eq=False)
class TurnLoop:
    """The loop of turns in one session.

    Args:
        session: stores the conversation.
        history: the part of the conversation that the model sees.
        steps: makes model steps.
        answers: makes what lets plugins check the last message of a run.
        hooks: the agent's hooks.
        tools: answers tool calls.
        results: stores results that are too long for the model.
        compactor: compacts the conversation between turns.
        queues: messages queued during the run.
        queue_changes: emits the events of their changes.
        spending: records usage.
        announcer: emits events.
        redactor: removes secrets from queued messages.
        sync: returns when everything recorded so far is on disk.
        max_turns: the maximum number of turns of a run.
    """

    session: Session = field(repr=False)
    history: VisibleHistory = field(repr=False)
    steps: ModelSteps = field(repr=False)
    answers: Callable[[Spending], LastAnswers] = field(repr=False)
    hooks: HookRegistry = field(repr=False)
    tools: ToolCalls = field(repr=False)
    results: LongResults = field(repr=False)
    compactor: Compactor = field(repr=False)
    queues: Queues = field(repr=False)
    queue_changes: QueueChanges = field(repr=False)
    spending: Spending = field(repr=False)
    announcer: Announcer = field(repr=False)
    redactor: Redaction = field(repr=False)
    sync: Callable[[], Awaitable[None]] = field(repr=False)
    max_turns: int

    async def go(self, run: Run) -> None:
        """Run turns until the model requests no more tools.

        Raises:
            SidebandError: if the run cannot continue; completed steps are stored.
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
        """Run one turn. Return whether another one follows."""
        if run.turn >= self.max_turns:
            raise RunParked(
                f"the run has reached the limit of {self.max_turns} turns",
                hint="check what it does, then continue with --resume; set `turns` under `[agent]` to change the limit",
                code="agent.turns",
            )
        self.spending.charge_time()
        self.spending.allowance.check("money", "tokens", "seconds")
        index, run.turn = run.turn, run.turn + 1
        self.tools.tools.renew()
        await self.announcer.emit(TurnStart, run.id, index)
        pending = unanswered(self.history.stored())
        message, calls = pending or await self._next_answer(run)
        answers = await self._answer(run, message, calls, asked_before=pending is not None) if calls else None
        results = answers.messages if answers else ()
        await self.announcer.emit_made(
            TurnEnd, lambda: TurnEnd(run.id, index, to_data(message), [to_data(one) for one in results])
        )
        if answers is not None and answers.halt is not None:
            raise answers.halt
        asked_again = isinstance(run.messages[-1], UserMessage)
        continues = asked_again or (answers is not None and not answers.terminate)
        return continues or bool(self.queues.steering)

    async def _next_answer(self, run: Run) -> tuple[AssistantMessage, tuple[ToolCallPart, ...]]:
        """Get the model's next answer. Return it with its tool calls."""
        await self._take_steering(run)
        await self.compactor.compact_if_due(run)
        message = await self.steps.step(run, str(run.step))
        if not message.tool_calls and self.hooks.has(Answer.hook) and not self.queues.steering:
            return await self._checked(run, message), ()
        self.spending.charge_answer(message.usage)
        run.usage += message.usage
        with anyio.CancelScope(shield=True):  # the answer was paid for: store it even if cancelled
            await self.session.append_message(message, run=run.id, step=str(run.step))
        run.messages.append(message)
        run.step += 1
        if self.steps.updates.held:
            await self.steps.updates.release()
        await self.announcer.emit_end(message)
        return message, message.tool_calls

    async def _checked(self, run: Run, message: AssistantMessage) -> AssistantMessage:
        """Store the last message of a run as plugins decide, with their instructions for a further round, if any."""
        answers = self.answers(self.spending)
        try:
            checked = await answers.check(run, message)
        except anyio.get_cancelled_exc_class():
            # it was paid for, but must not be stored unchecked
            with anyio.CancelScope(shield=True):
                await self.spending.charge_side_call(message.usage, "agent")
            raise
        self.spending.charge_answer(message.usage)
        run.usage += message.usage
        stored, instructions = answers.decide(checked, message)
        step, following = str(run.step), str(run.step + 1)
        with anyio.CancelScope(shield=True):
            await self.session.append(
                MessageEntry(message=stored, run=run.id, step=step),
                *(MessageEntry(message=one, run=run.id, step=following) for one in instructions),
            )
        run.messages += (stored, *instructions)
        run.step += 1
        if not instructions:  # otherwise no user sees the draft
            await (self.steps.updates.release() if stored is message else self.steps.updates.replace(stored.text))
        await self.announcer.emit_end(stored)
        for one in instructions:
            await self.announcer.emit_message(one)
        return stored

    async def _answer(
        self, run: Run, message: AssistantMessage, calls: tuple[ToolCallPart, ...], *, asked_before: bool
    ) -> TurnAnswers:
        # all results together must fit the window: messages just added cannot be compacted
        self.results.limit(await self.compactor.window(run.model) // 2 // len(calls))
        step = str(run.step - 1)
        asked = message.tool_calls
        numbered = [(asked.index(call), call) for call in calls]
        answers = await self.tools.answer(numbered, step, asked_before=asked_before)
        with anyio.CancelScope(shield=True):
            await self.session.append(
                *(
                    MessageEntry(message=one, run=run.id, step=f"{step}.{index}")
                    for one, (index, _) in zip(answers.messages, numbered, strict=True)
                )
            )
        self.tools.settle()
        if answers.changed:
            await self.sync()  # before the model sees what has changed
        run.messages.extend(answers.messages)
        for one in answers.messages:
            await self.announcer.emit_message(one)
        return answers

    async def _take_steering(self, run: Run) -> None:
        """Store the queued messages. A message leaves the queue only after it is stored, so that none is lost."""
        for _ in range(self.queues.for_next_step()):
            if not self.queues.steering:  # an observer has cleared the queues
                return
            queued = self.queues.steering[0]
            text = self.redactor.text(queued.text)
            message = user_message(text, queued.attachments, source=queued.source)
            with anyio.CancelScope(shield=True):
                await self.session.append_message(message, run=run.id, step=str(run.step))
            self.queues.remove_steering(queued)
            run.messages.append(message)
            await self.queue_changes.emit()
            await self.announcer.emit_message(message)
