"""The tool calls of one turn: checked and decided in order, run concurrently, answered in the order of the calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

import anyio
from attrs import define, evolve, field
from sideband.approvals import ApprovalNeeded
from sideband.broker import CallProgress, Redaction, Unserializable, answer_as_data, decisions_as_data
from sideband.hooks import (
    HookRegistry,
    ToolCall,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolResult,
    Verdict,
    thaw,
)
from sideband.messages import TextPart, ToolCallPart, ToolResultMessage
from sideband.ops import OpCancelled, OpError
from sideband.settings import ToolSettings
from sideband.suggestions import did_you_mean
from sideband.tools import Tool

from .._announcer import Announcer
from .._approval_mode import SessionApprovalMode
from .._errors import ApprovalAwaited, RunHalted, ToolDenied, ToolRejected
from .._session_tools import SessionTools
from .._spending import Spending
from ._admission import Admission
from ._argument_coercion import coerced
from ._planned_calls import PlannedCall, group_of, groups
from ._result_parts import as_parts, redacted
from ._tool_answer import ToolAnswer, TurnAnswers
from ._tool_context import ToolCallContext, ToolContexts
from ._tool_effects import ToolEffects, changes_something, is_indirect, is_repeatable, unrepeated
from ._tool_progress import ToolProgressEvents, observes_progress
from ._tool_questions import ToolQuestions

_Answer = TypeVar("_Answer")
_EXPANSION = "tool_expand_tools"
"""The name of a tool with which models request the definitions of other tools, if a plugin provides it."""
_REMOVED = "The tool {} was removed or changed before this call began. The call was not run."


@define(eq=False)
class ToolCalls:
    """The tool calls of an agent.

    Args:
        hooks: the agent's hooks, which decide about calls and change results.
        announcer: emits events.
        effects: runs a tool as an effect, and records calls that are not run.
        contexts: makes the context of a tool call.
        tools: the tools of the session.
        questions: asks for approval when a guard requires it.
        approval: the approval mode of the session.
        parallel: the maximum number of concurrent calls.
        spending: charges the calls; raises if the budget is used up.
        redactor: removes secrets from events and from the plugins' changes.
        settings: the table ``[tools]``.
    """

    hooks: HookRegistry = field(repr=False)
    announcer: Announcer = field(repr=False)
    effects: ToolEffects = field(repr=False)
    contexts: ToolContexts = field(repr=False)
    tools: SessionTools
    questions: ToolQuestions = field(repr=False)
    approval: SessionApprovalMode = field(repr=False)
    parallel: int
    spending: Spending = field(repr=False)
    redactor: Redaction = field(repr=False)
    settings: ToolSettings = field(repr=False)
    _limiter: anyio.CapacityLimiter | None = field(default=None, init=False)
    _current: list[PlannedCall] = field(factory=list, init=False)
    _single: list[PlannedCall] = field(factory=list, init=False)
    _admission: Admission = field(factory=Admission, init=False)

    async def answer(
        self, calls: Sequence[tuple[int, ToolCallPart]], step: str, *, asked_before: bool = False
    ) -> TurnAnswers:
        """Answer all calls of a turn.

        Args:
            calls: the calls, each with its index in the model's answer.
            step: the step of the model's answer in its run.
            asked_before: whether an earlier attempt to answer them was interrupted, so that some may have been run.

        Raises:
            ApprovalAwaited: if calls need approval, and there is no approver. Other calls of their group have been run.
            BudgetSpent: if no calls remain. The groups of calls after the last completed one were not begun.
            LedgerError: if a call cannot be recorded.
        """
        self._current = planned = [PlannedCall(part, f"{step}.{index}") for index, part in calls]
        halt: RunHalted | None = None
        for group in groups(planned, self.tools.allowed.get):
            for one in group:
                try:
                    if not (asked_before and await self._recall(one)):
                        halt = await self._plan(one)
                except ApprovalNeeded as needed:
                    one.waits = needed
                if halt is not None:
                    break
            if halt is not None:
                break
            await self._run_group([one for one in group if one.answer is None and one.waits is None])
            if waiting := [one.waits for one in group if one.waits is not None]:
                raise ApprovalAwaited(waiting)
        terminate = all(one.answer is not None and one.answer.terminate for one in planned)
        changed = any(
            (one.begun or asked_before) and (one.tool is None or changes_something(one.tool)) for one in planned
        )
        messages = tuple(one.message for one in planned)
        return TurnAnswers(messages, terminate=terminate, changed=changed, halt=halt)

    async def answer_one(self, one: PlannedCall) -> RunHalted | None:
        """Answer a call of a program, while others are in progress. Return why the run must end, if a guard halted it.

        Raises:
            BudgetSpent: if no calls remain. The call was not begun.
        """
        self.tools.renew()
        self.tools.sent = self.tools.offered  # there is no model to which only some are sent
        self._single.append(one)
        try:
            halt = None
            try:
                halt = await self._plan(one)
            except ApprovalNeeded as needed:
                refused = await self._refuse(one, needed)
                one.answer = await self._after(one, refused.noting(hint=needed.hint))
            if one.answer is None and one.cancelled is not None:
                one.answer = await self._refuse(one, OpCancelled(one.part.name))
            if one.answer is None and one.tool is not None:
                group = None if one.tool.exclusive else group_of(one.part, one.tool)
                async with self._admission.entered(group):
                    self.spending.charge_tool_call()
                    async with self._limit():
                        await self._run(one)
            return halt
        finally:
            self._single.remove(one)

    def settle(self) -> None:
        """Forget the last calls, whose results have been stored."""
        self._current = []

    def interrupted(self) -> tuple[ToolResultMessage, ...]:
        """Return results for the calls that were in progress when the run was aborted, in the order of the calls."""
        return tuple(one.message for one in self._current)

    def cancel(self, call: str, reason: str) -> bool:
        """Cancel one call, and no other. Return whether it has this id and had no answer."""
        return any(one.cancel(reason) for one in (*self._current, *self._single) if one.part.id == call)

    async def recalled(self, part: ToolCallPart, answer: ToolAnswer) -> ToolResultMessage:
        """Return the result for a call that is not run again: its recorded answer, as changed by plugins."""
        one = PlannedCall(part, "", self.tools.allowed.get(part.name))
        one.answer = await self._after(one, answer)
        return one.message

    async def _recall(self, one: PlannedCall) -> bool:
        """Answer the call from its record, or prepare to run it again. Return whether guards need not be asked."""
        tool = self.tools.allowed.get(one.part.name)
        ctx = self.contexts.make(tool, one.part.id, one.step)
        answer = await self.effects.recall(ctx.key, one.part.name)
        if answer is None or ("unknown" in answer.metadata and tool is not None and is_repeatable(tool)):
            return False
        one.tool = tool
        if "unknown" in answer.metadata and "replayed" not in answer.metadata:
            answer = await self._resume(one, ctx, answer)
        if answer is not None:
            await ctx.forget_children(earlier=True)  # if the host died before it did that
            one.answer = await self._after(one, answer)
        return True

    async def _resume(self, one: PlannedCall, ctx: ToolCallContext, unknown: ToolAnswer) -> ToolAnswer | None:
        """Prepare to run an interrupted call again. Return its answer if it is not run again.

        Guards are not asked again: they have decided about this call, and are asked about its further effects.
        """
        if self._look_up(one) is not None or one.tool is None:
            return unknown
        found = await self._asking(one, partial(self.effects.interrupted, one.tool, one.arguments, ctx))
        if found is None:
            return unknown
        if isinstance(found, str):
            return unrepeated(one.tool.name, found)
        one.interrupted = found
        return None

    async def _plan(self, one: PlannedCall) -> RunHalted | None:
        """Find the tool, validate the arguments, and ask the guards."""
        problem = self._look_up(one)
        if problem is not None:
            one.answer = await self._after(one, await self._refuse(one, ToolRejected(problem)))
            return None
        assert one.tool is not None  # noqa: S101  looked up above
        if not self.hooks.has(ToolCall.hook):
            return None
        tool = one.tool
        event = ToolCall(
            one.part.id,
            tool.name,
            one.arguments,
            level=tool.level,
            read_only=tool.read_only,
            indirect=is_indirect(tool),
        )
        decision = await self.hooks.decide(event, validate=partial(self._validated, one, tool))
        if decision.replaced_by and decision.arguments is not None:
            one.arguments = thaw(decision.arguments)
        one.decisions = decisions_as_data(decision)
        if decision.verdict is Verdict.DENY:
            one.answer = await self._refuse(one, ToolDenied(tool.name, decision))
            return RunHalted(decision.reason, decision.plugin) if decision.halt else None
        ctx = self.contexts.make(tool, one.part.id, one.step)
        answer = await self._asking(one, partial(self.questions.ask, tool, one.arguments, ctx, decision))
        if answer is not None:
            one.decisions.append(answer_as_data(answer))
            if not answer.allowed:
                one.answer = await self._refuse(one, ToolDenied(tool.name, decision, answer))
            elif decision.mode is not None:
                await self.approval.select(decision.mode, source="plan")
        return None

    async def _asking(self, one: PlannedCall, ask: Callable[[], Awaitable[_Answer]]) -> _Answer | None:
        """Return the answer to a question about a call; ``None`` if the call was cancelled, which withdraws it."""
        if one.cancelled is not None:
            return None
        with one.scope:
            answer = await ask()
        if one.cancelled is not None:
            await self._withdraw_questions(one)
            return None
        one.scope = anyio.CancelScope()
        return answer

    async def _withdraw_questions(self, one: PlannedCall) -> None:
        ctx = self.contexts.make(one.tool, one.part.id, one.step)
        await self.questions.approvals.withdraw(run=ctx.origin.run or "", step=one.step)

    async def _refuse(self, one: PlannedCall, error: OpError) -> ToolAnswer:
        """Record a call that is not run, and return its answer."""
        tool, part = one.tool, one.part
        ctx = self.contexts.make(tool, part.id, one.step)
        name = tool.name if tool else part.name
        return await self.effects.refuse(name, one.arguments or part.arguments, ctx, error, one.decisions)

    def _look_up(self, one: PlannedCall) -> str | None:
        """Return why the call cannot be run as the model wrote it, or ``None``."""
        part = one.part
        one.tool = self.tools.allowed.get(part.name)
        if part.problem is not None:
            return f"This call of {part.name} was not run: {part.problem}. Write arguments as one JSON object."
        if one.tool is None or self.tools.sent.get(part.name) is None:
            return self._unavailable(part.name, one.tool)
        try:
            arguments, one.coerced = coerced(part.arguments, one.tool.parameters)
            one.arguments = self._validated(one, one.tool, arguments)
        except ValueError as error:
            return f"Invalid arguments for {part.name}: {error}. The tool was not run; correct them and call it again."
        except Exception as error:  # noqa: BLE001  if validation fails, the tool is not run
            return f"{part.name} failed to validate its arguments ({type(error).__name__}). The tool was not run."
        return None

    def _validated(self, one: PlannedCall, tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return valid arguments, with the values of the host for parameters that models do not see."""
        if tool.from_host:
            ctx = self.contexts.make(tool, one.part.id, one.step)
            arguments = tool.filled(arguments, evolve(ctx.origin, principal=ctx.principal))
        validated: object = tool.validate(arguments)
        if not isinstance(validated, dict):
            raise TypeError(f"`validate` must return the arguments as a dict, got a {type(validated).__name__}")
        return validated

    def _unavailable(self, asked: str, tool: Tool | None) -> str:
        """Return why a tool may not be called, or how the model gets one that the last request did not send."""
        if tool is None:
            known = [one.model_name for one in self.tools.allowed.tools]
            if self.tools.offered.get(asked) is not None:
                return f"The tool {asked} may not be called here. Allowed tools: {', '.join(known) or 'none'}."
            return f"unknown tool `{asked}`{did_you_mean(asked, known)}"
        name = tool.model_name
        if self.tools.sent.get(_EXPANSION) is not None and self.tools.allowed.get(_EXPANSION) is not None:
            remedy = f"Call {_EXPANSION} with the name {name}, and then call it as its definition says"
        else:
            self.tools.requested |= {name}
            remedy = "It is sent from now on: read its definition and call it again"
        return f"The tool {name} is available, but was not sent with this request, so it was not run. {remedy}."

    async def _run_group(self, group: Sequence[PlannedCall]) -> None:
        for _ in group:
            self.spending.charge_tool_call()
        if len(group) == 1:
            await self._run(group[0])
            return
        failures: list[Exception] = []
        async with anyio.create_task_group() as tasks:
            for one in group:
                tasks.start_soon(self._run_limited, one, failures)
        if failures:
            raise failures[0]

    def _limit(self) -> anyio.CapacityLimiter:
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(self.parallel)
        return self._limiter

    async def _run_limited(self, one: PlannedCall, failures: list[Exception]) -> None:
        async with self._limit():
            try:
                await self._run(one)
            except Exception as error:  # noqa: BLE001  raised again after the other calls have ended
                failures.append(error)

    async def _run(self, one: PlannedCall) -> None:
        assert one.tool is not None  # noqa: S101  only planned calls get here
        tool, part = self.tools.current(one.tool), one.part
        if one.cancelled is not None:
            one.answer = await self._after(one, one.cancellation)
            return
        if tool is None:
            one.answer = await self._after(one, await self._refuse(one, ToolRejected(_REMOVED.format(part.name))))
            return
        started = perf_counter()
        await self.announcer.emit_made(
            ToolExecutionStart, lambda: ToolExecutionStart(part.id, tool.name, self._redacted(one.arguments))
        )
        one.begun = True
        run = self._run_observed if observes_progress(self.hooks, self.settings) else self._run_effect
        answer: ToolAnswer | None = None
        try:
            with one.scope:
                answer = await run(one, tool)
        except ApprovalNeeded as needed:
            one.waits = needed
            answer = ToolAnswer.error(needed.message, code=needed.code)
        ms = round((perf_counter() - started - one.asked) * 1000, 3)
        if answer is None:  # only its scope ends it without an answer
            answer = one.cancellation
            await self._withdraw_questions(one)
        if one.waits is None:
            answer = await self._after(one, answer)
        one.answer = ended = answer.noting(ms=ms, **({"coerced": one.coerced} if one.coerced else {}))
        await self.announcer.emit_made(
            ToolExecutionEnd,
            lambda: ToolExecutionEnd(
                part.id,
                tool.name,
                ended.shown,
                is_error=ended.is_error,
                ms=ms,
                hint=ended.metadata.get("hint", ""),
            ),
        )

    async def _run_effect(self, one: PlannedCall, tool: Tool, progress: CallProgress | None = None) -> ToolAnswer:
        ctx = self.contexts.make(tool, one.part.id, one.step, progress)
        try:
            return await self.effects.run(tool, one.arguments, ctx, one.decisions, one.interrupted, parks=one.parks)
        finally:
            ctx.end()
            one.asked = self.questions.approvals.waits.taken(ctx.origin)

    async def _run_observed(self, one: PlannedCall, tool: Tool) -> ToolAnswer:
        """Run a call and emit its progress, which takes a second task."""
        events = ToolProgressEvents.of_call(one.part.id, tool.name, self.announcer, self.redactor, self.settings)
        async with events.emitted() as progress:
            return await self._run_effect(one, tool, progress)

    def _redacted(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Redact arguments for events: a guard may have inserted a secret."""
        try:
            redacted: Mapping[str, Any] = self.redactor.data(arguments, sensitive_keys=False)
        except Unserializable:
            return {}
        return redacted

    async def _after(self, one: PlannedCall, answer: ToolAnswer) -> ToolAnswer:
        """Return the answer as changed by plugins, followed by their notes."""
        if not self.hooks.has(ToolResult.hook):
            return answer
        before = answer.shown
        name = one.tool.name if one.tool else one.part.name
        arguments = one.arguments or one.part.arguments
        event = ToolResult(one.part.id, name, arguments, before, is_error=answer.is_error, terminate=answer.terminate)
        after = await self.hooks.update(event)
        parts = as_parts(redacted(thaw(after.content), self.redactor)) if after.content != before else answer.content
        content = (*parts, *(TextPart(text=f"[{note.plugin}] {note.text}") for note in after.notes))
        if content != answer.content:  # plugins may have added secrets that the answer did not contain
            content = (*as_parts(self.redactor.data([part.model_dump() for part in content], sensitive_keys=False)),)
        metadata = {**answer.metadata, **({"withheld_by": after.withheld_by} if after.withheld_by else {})}
        return ToolAnswer(content=content, is_error=after.is_error, terminate=after.terminate, metadata=metadata)
