"""Run tool calls as effects: claimed by their key, recorded before they run, and never repeated once recorded."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from secrets import token_hex
from time import perf_counter
from typing import Any

from attrs import define, field
from pydantic import BaseModel, ConfigDict
from sideband.approvals import ApprovalNeeded
from sideband.broker import Attempt, BoundOp, Broker, KeyReused, safe_text
from sideband.contexts import TimedLease
from sideband.errors import SidebandError
from sideband.exit_codes import ExitCode
from sideband.messages import TextPart
from sideband.ops import EffectInFlight, EffectUnknown, Level, OpContext, OpError, OpSpec, OpTimeout
from sideband.tools import Tool, ToolOutput
from sideband.workers import CodeChanged

from .._broker_calls import LONGEST_CALL, new_call
from ._long_results import LongResults
from ._replays import InterruptedCall, Replays, listed
from ._result_parts import fitted_metadata, fitted_parts, redacted
from ._tool_answer import ToolAnswer
from ._tool_context import ToolCallContext

PLUGIN_TOOL_SECONDS = 600.0
"""The timeout of a plugin's tool if neither the tool nor a setting defines one."""

_OP = "tool.call"
_MAX_LISTED = 100
_log = logging.getLogger("sideband.agent")

Decisions = Sequence[Mapping[str, Any]]
"""The decisions of guards about a call, as recorded."""


class ToolCallParams(BaseModel):
    """The parameters of ``tool.call``, which neither skills nor plugins can dispatch.

    Attributes:
        tool: the name of the tool.
        arguments: the arguments of the call.
        call: the id that the model gave the call.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tool: str
    arguments: dict[str, Any]
    call: str


@define(eq=False)
class _RunningCall:
    """A call that was passed to the broker, with what its op needs to run it.

    Attributes:
        effects: runs the tool.
        tool: the tool.
        ctx: the context of the call.
        interrupted: the interrupted call that it repeats, if any.
        ran: whether the tool was run, and not answered from its record.
    """

    effects: ToolEffects
    tool: Tool
    ctx: ToolCallContext
    interrupted: InterruptedCall | None = None
    ran: bool = False


@define(eq=False)
class ToolEffects:
    """The tool calls of one agent's session, run as effects.

    Args:
        broker: claims and records effects.
        results: stores results that are too long for the model.
        replays: finds interrupted calls that may run again.
        seconds: the timeout of tools without their own, if a setting defines one.
    """

    broker: Broker = field(repr=False)
    results: LongResults = field(repr=False)
    replays: Replays = field(repr=False)
    seconds: float | None = None

    async def run(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        ctx: ToolCallContext,
        decisions: Decisions = (),
        interrupted: InterruptedCall | None = None,
        *,
        parks: bool = True,
    ) -> ToolAnswer:
        """Run a tool, or return its recorded answer if it has run under this key before.

        An exception of the tool becomes an answer for the model, and so does an error of the broker about this call. A
        call that was running when its host ended is repeated only if it is passed as ``interrupted``; else its outcome
        is unknown, and the answer reports that.

        Args:
            tool: the tool.
            arguments: validated arguments.
            ctx: the context of the call.
            decisions: the decisions of guards, recorded with the call.
            interrupted: the interrupted call that is to run again.
            parks: whether it may wait for an approval, and run again.

        Raises:
            ApprovalNeeded: if the call needs an approval, and can run again once it is given.
            LedgerError: if the call cannot be recorded; it was not run.
        """
        if interrupted is not None:
            ctx.attempt = interrupted.attempt
        elif tool.resume != "never" or _is_of_skill(tool):
            ctx.attempt = Attempt.first(ctx.key)
        if ctx.attempt is not None:
            ctx.attempt.parks = parks and self.replays.allowed(tool) != "never"
        try:
            try:
                return await self._dispatch(tool, arguments, ctx, decisions, interrupted=interrupted)
            except (EffectInFlight, EffectUnknown, KeyReused) as error:
                if not is_repeatable(tool):
                    return _unknown(tool, error)
            if ctx.attempt is not None:
                parks = ctx.attempt.parks
                ctx.attempt = await self.replays.repeated(ctx)
                ctx.attempt.parks = parks
            return await self._dispatch(tool, arguments, ctx, decisions, key=f"{ctx.key}~{token_hex(4)}")
        except ApprovalNeeded:
            raise
        except OpTimeout as error:
            return ToolAnswer.error(self._timeout_message(tool, error), code=error.code)
        except OpError as error:
            return ToolAnswer.error(_text_of(error), **self._details(error))

    async def recall(self, key: str, name: str) -> ToolAnswer | None:
        """Return the recorded answer under a key without running the tool, or ``None`` without a record.

        Args:
            key: the key.
            name: the name of the tool, as the model knows it.
        """
        found = await self.replays.last(key)
        if found is None:
            return None
        _, state, result = found
        return ToolAnswer.model_validate(result).noting(replayed=True) if state == "done" else unrepeated(name)

    async def interrupted(self, tool: Tool, arguments: dict[str, Any], ctx: ToolCallContext) -> InterruptedCall | str:
        """Return how a call that was interrupted, or waited for an approval, may run again, or why it may not.

        Raises:
            ApprovalNeeded: if a person must be asked, and there is no approver.
        """
        return await self.replays.find(tool, _params(tool, arguments, ctx), ctx)

    async def refuse(
        self, name: str, arguments: Mapping[str, Any], ctx: ToolCallContext, error: OpError, decisions: Decisions = ()
    ) -> ToolAnswer:
        """Record a call that is not run.

        Args:
            name: the name of the tool; as the model wrote it if it is unknown.
            arguments: the arguments that the model wrote.
            ctx: the context of the call.
            error: why it is not run; shown to the model.
            decisions: the decisions of guards.

        Raises:
            LedgerError: if it cannot be recorded.
        """
        params = {"tool": name, "arguments": arguments, "call": ctx.call}
        call = new_call(ctx.origin, ctx.hooks)
        effect = await self.broker.refuse(call, _op(Level.SAFE), params, error, decisions=decisions)
        plugin = {"plugin": error.plugin} if error.plugin else {}
        return ToolAnswer.error(error.message, code=error.code, effect=effect, **plugin)

    def _seconds(self, tool: Tool) -> float:
        """Return the timeout of a tool. A call of a skill enforces its own timeout, and reports the cause."""
        if _is_of_skill(tool):
            return (self.seconds if tool.timeout is None else None) or LONGEST_CALL
        return tool.timeout or self.seconds or PLUGIN_TOOL_SECONDS

    def _timeout_message(self, tool: Tool, error: OpTimeout) -> str:
        by_setting = tool.timeout is None and self.seconds is not None
        limit = f"{self._seconds(tool):g} s{' (set by `[agent] tool_seconds`)' if by_setting else ''}"
        blocks = (
            "; if it computes without `await`, set `sideband.isolation: call` in SKILL.md to keep other calls running"
        )
        hint = error.hint + (blocks if _is_of_skill(tool) else "")
        return f"{tool.name} timed out after {limit}: {hint}. It may have been executed in part."

    async def _dispatch(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        ctx: ToolCallContext,
        decisions: Decisions,
        *,
        interrupted: InterruptedCall | None = None,
        key: str = "",
    ) -> ToolAnswer:
        seconds = self._seconds(tool)
        ctx.lease = TimedLease(perf_counter() + seconds, ctx.agent.run)
        call = new_call(ctx.origin, ctx.hooks, seconds=seconds, outer=ctx.agent.run)
        attempt = ctx.attempt
        note: dict[str, Any] = {} if attempt is None else await self.replays.beginning(tool, ctx, attempt)
        if interrupted is not None:
            key = interrupted.key
            note |= {"replay": interrupted.number, "interrupted": interrupted.effect}
        call.note, call.decided = note, interrupted is not None
        running = _RunningCall(self, tool, ctx, interrupted)
        outer = _running.set(running)
        try:
            result = await self.broker.dispatch(
                call,
                _OP,
                _params(tool, arguments, ctx),
                key=key or ctx.key,
                own=_op_of(tool),
                decisions=(*decisions, *(interrupted.decisions if interrupted else ())),
            )
        finally:
            _running.reset(outer)
            waits = attempt is not None and attempt.waits is not None
            if attempt is not None and not waits:
                await self.broker.attempts.forget(attempt)
            if running.ran and not waits:
                await ctx.forget_children(earlier=interrupted is not None)
        answer = ToolAnswer.model_validate(result)
        return answer if running.ran else answer.noting(replayed=True)

    async def answer(self, tool: Tool, arguments: dict[str, Any], ctx: ToolCallContext) -> ToolAnswer:
        """Run a tool, without a record of it, and convert its result or its exception to an answer."""
        try:
            output = await tool.run(arguments, ctx)
            if not isinstance(output, ToolOutput):
                output = ToolOutput(output)
            return await self._fitted(output, tool.source)
        except SidebandError as error:
            return await self._failed(_text_of(error), **self._details(error))
        except Exception as error:  # noqa: BLE001  a tool may raise or return anything
            return await self._failed(
                f"{tool.name} failed: {type(error).__name__}: {safe_text(error)}", code="tool.failed"
            )

    async def _failed(self, text: str, **metadata: Any) -> ToolAnswer:
        return (await self._fitted(ToolOutput(text, is_error=True))).noting(**metadata)

    def _details(self, error: SidebandError) -> dict[str, Any]:
        """Return the metadata of an answer for an error: its code, its hint, and whether the call was denied."""
        hint = {"hint": self.broker.redactor.text(error.hint)} if error.hint else {}
        denied = {"denied": True} if error.exit_code is ExitCode.DENIED else {}
        return {"code": error.code, **hint, **denied}

    async def _fitted(self, output: ToolOutput, source: str = "") -> ToolAnswer:
        """Build the answer, with long texts shortened and their full text stored."""
        content: list[Any] = []
        handles: list[str] = []
        redactor = self.broker.redactor
        of_skill = source.startswith("skill ")
        parts = fitted_parts(output.content if of_skill else redacted(output.content, redactor))
        texts = sum(isinstance(part, TextPart) for part in parts)
        for part in parts:
            if isinstance(part, TextPart):
                text, handle = await self.results.shown(redactor.text(part.text), share=texts)
                handles += [handle] if handle else []
                content.append(part if text == part.text else TextPart(text=text))
            else:
                content.append(part)
        known = {"output": handles[0]} if handles else {}
        return ToolAnswer(
            content=tuple(content),
            is_error=bool(output.is_error),
            terminate=bool(output.terminate),
            metadata={**fitted_metadata(output.metadata, redactor, source=source), **known},
        )


_running: ContextVar[_RunningCall] = ContextVar("sideband_running_tool_call")


async def _run(params: ToolCallParams, own: OpContext) -> ToolAnswer:
    """Run the tool of the current call. The handler of the op."""
    running = _running.get()
    running.ran = True
    progress = running.ctx.call_progress
    if progress is None:
        answer = await running.effects.answer(running.tool, params.arguments, running.ctx)
    else:
        with progress.writing(running.tool.name, is_root=True):
            answer = await running.effects.answer(running.tool, params.arguments, running.ctx)
    attempt = running.ctx.attempt
    if attempt is not None and attempt.waits is not None:
        raise ApprovalNeeded(attempt.waits.request)  # not an outcome: the call runs again
    if running.interrupted is not None:
        answer = _reported(answer, running.tool, running.interrupted)
    return answer.noting(effect=own.effect)


def _op_of(tool: Tool) -> BoundOp:
    """Return the op that runs a tool."""
    # A source of tools is not open in the replay of a cassette, which has the answers of its tools.
    replayed = tool.source.startswith(("source ", "session "))
    return _op(tool.level, repeatable=is_repeatable(tool), indirect=is_indirect(tool), replayed=replayed)


@cache
def _op(level: Level, *, repeatable: bool = True, indirect: bool = False, replayed: bool = False) -> BoundOp:
    """Return the op that runs tools of a level. All agents share it."""
    spec = OpSpec(
        name=_OP,
        handler=_run,
        params=ToolCallParams,
        result=ToolAnswer,
        level=level,
        timeout=LONGEST_CALL,
        idempotent=repeatable,
        indirect=indirect,
        record=("tool", "arguments", "call"),
        foreign_names=True,
        egress=False if indirect else None,
    )
    return BoundOp.own(spec, plugin="agent", replayed=replayed)


def is_indirect(tool: Tool) -> bool:
    """Return whether a call of the tool only causes effects that are dispatched, about which guards decide too."""
    return _is_of_skill(tool) or tool.resume != "never"


def is_repeatable(tool: Tool) -> bool:
    """Return whether a call of the tool can be repeated safely."""
    return tool.read_only or tool.level is Level.SAFE


def changes_something(tool: Tool) -> bool:
    """Return whether the result of a call must be on disk before the model sees it."""
    return tool.level >= Level.CONTROLLED and not is_repeatable(tool)


def _is_of_skill(tool: Tool) -> bool:
    return tool.source.startswith("skill ")


def _text_of(error: SidebandError) -> str:
    return f"{error.message}. {error.hint}" if error.hint else error.message


def _params(tool: Tool, arguments: dict[str, Any], ctx: ToolCallContext) -> dict[str, Any]:
    return {"tool": tool.name, "arguments": arguments, "call": ctx.call}


def unrepeated(name: str, reason: str = "") -> ToolAnswer:
    """Return the answer to an interrupted call that is not run again.

    Args:
        name: the name of the tool.
        reason: why it is not run again, if it could have been.
    """
    why = f" ({reason})" if reason else ""
    return ToolAnswer.error(
        f"It is unknown whether {name} was executed: its run ended while it was running, and it was not repeated{why}. "
        "Check the current state before you decide what to do.",
        code="effect.unknown",
        unknown=True,
    )


def _reported(answer: ToolAnswer, tool: Tool, interrupted: InterruptedCall) -> ToolAnswer:
    """Return the answer of a call that was run again, with what differs from the interrupted attempt."""
    attempt = interrupted.attempt
    skipped = attempt.skipped
    replay = {"number": interrupted.number, "answered": attempt.answered[:_MAX_LISTED]}
    if skipped:
        replay["skipped"] = [one.effect for one in skipped[:_MAX_LISTED]]
    if (error := attempt.unknown) is not None:
        return ToolAnswer.error(
            f"{tool.name} was interrupted and could not be completed, because the outcome of one of its effects is "
            f"unknown: {_text_of(error)}. Check the current state before you decide what to do.",
            code=error.code,
            unknown=True,
            replay=replay,
        )
    if answer.metadata.get("code") == CodeChanged.code:
        answer = answer.noting(unknown=True)
    if skipped:
        text = (
            f"{tool.name} was interrupted and run again. This time it took another path and did not request effects "
            f"that the interrupted attempt had begun: {listed(skipped)}."
        )
        _log.warning("%s", text)
        answer = answer.model_copy(update={"content": (*answer.content, TextPart(text=f"[{text}]"))})
    return answer.noting(replay=replay)


def _unknown(tool: Tool, error: OpError) -> ToolAnswer:
    return ToolAnswer.error(
        f"It is unknown whether {tool.name} was executed: the process ended while it was running, and it was not "
        f"repeated. Check the current state before you decide what to do. ({_text_of(error)})",
        code=error.code,
        unknown=True,
    )
