"""One tool call as an effect: claimed by its key, recorded before it runs, and never run again once it is recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Any

from attrs import define, field
from pydantic import BaseModel, ConfigDict
from sideband.broker import BoundOp, Broker, KeyReused, safe_text
from sideband.errors import SidebandError
from sideband.messages import TextPart
from sideband.ops import EffectInFlight, EffectUnknown, Level, OpContext, OpError, OpSpec, OpTimeout
from sideband.tools import Tool, ToolOutput

from .._broker_calls import LONGEST_CALL, new_call
from ._long_results import LongResults
from ._result_parts import fitted_metadata, fitted_parts
from ._tool_answer import ToolAnswer
from ._tool_context import ToolCallContext

PLUGIN_TOOL_SECONDS = 600.0
"""For a tool of a plugin that names no limit of its own, as long as no setting does."""

_OP = "tool.call"

Decisions = Sequence[Mapping[str, Any]]
"""What guards said of a call, as the record keeps it."""


class ToolCallParams(BaseModel):
    """The parameters of ``tool.call``, which no skill and no plugin can ask for.

    Attributes:
        tool: the name of the tool.
        arguments: what it is called with.
        call: the id that the model gave the call.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tool: str
    arguments: dict[str, Any]
    call: str


@define(eq=False)
class _UnderWay:
    """A call that the broker has been asked for: what its op needs to run it.

    Attributes:
        tool: the tool.
        ctx: what the tool gets.
        ran: whether it was run, and not answered from its record.
    """

    tool: Tool
    ctx: ToolCallContext
    ran: bool = False


@define(eq=False)
class ToolEffects:
    """Runs tools of one agent's session.

    Args:
        broker: records and claims.
        results: keeps what is too long for the model.
        seconds: for tools that name no limit of their own, if a setting says it.
    """

    broker: Broker = field(repr=False)
    results: LongResults = field(repr=False)
    seconds: float | None = None
    _ops: dict[Level, BoundOp] = field(factory=dict, init=False, repr=False)
    _under_way: dict[str, _UnderWay] = field(factory=dict, init=False, repr=False)

    async def run(
        self, tool: Tool, arguments: dict[str, Any], ctx: ToolCallContext, said: Decisions = ()
    ) -> ToolAnswer:
        """Run a tool, or say again what it answered when it ran under this key before.

        What a tool raises is an answer, told to the model, and so is what the broker says against this one call. A call
        that was under way when its host ended is not repeated: whether it has done something is not known, and the
        answer says so.

        Args:
            tool: the tool.
            arguments: valid ones.
            ctx: what the tool gets.
            said: what guards said of the call; recorded with it.

        Raises:
            LedgerError: it can't be recorded, and so was not run.
        """
        try:
            try:
                return await self._dispatch(tool, arguments, ctx, ctx.key, said)
            except (EffectInFlight, EffectUnknown, KeyReused) as error:
                if not is_repeatable(tool):
                    return _unknown(tool, error)
            return await self._dispatch(tool, arguments, ctx, f"{ctx.key}~{token_hex(4)}", said)
        except OpTimeout as error:
            return ToolAnswer.error(self._too_slow(tool, error), code=error.code)
        except OpError as error:
            return ToolAnswer.error(_told(error), code=error.code)

    async def recall(self, key: str, name: str) -> ToolAnswer | None:
        """What is recorded of the call under a key, without running it; ``None`` if nothing happened.

        Args:
            key: the key.
            name: the tool, as the model knows it.
        """
        found = await self.broker.recall(key)
        if found is None:
            return None
        state, result = found
        if state == "done":
            return ToolAnswer.model_validate(result).noting(replayed=True)
        return ToolAnswer.error(
            f"It is not known whether {name} did its work: its run ended while it was under way, and it was not "
            "repeated. Find out how things stand before you decide what to do.",
            code="effect.unknown",
            unknown=True,
        )

    async def refuse(
        self, name: str, arguments: Mapping[str, Any], ctx: ToolCallContext, error: OpError, said: Decisions = ()
    ) -> ToolAnswer:
        """Record a call that is not run.

        Args:
            name: the tool, as far as there is one; else as the model wrote it.
            arguments: what the model wants it to be called with.
            error: why it is not run; what the model is told.
            said: what guards said of it.

        Raises:
            LedgerError: it can't be recorded.
        """
        params = {"tool": name, "arguments": arguments, "call": ctx.call}
        call = new_call(ctx.origin, ctx.hooks)
        effect = await self.broker.refuse(call, self._op(Level.SAFE), params, error, decisions=said)
        plugin = {"plugin": error.plugin} if error.plugin else {}
        return ToolAnswer.error(error.message, code=error.code, effect=effect, **plugin)

    def _seconds(self, tool: Tool) -> float:
        """How long a tool may take; of a skill's tool without a limit, the policy says it."""
        usual = LONGEST_CALL if _is_of_skill(tool) else PLUGIN_TOOL_SECONDS
        return tool.timeout or self.seconds or usual

    def _too_slow(self, tool: Tool, error: OpTimeout) -> str:
        by_setting = tool.timeout is None and self.seconds is not None
        return (
            f"{tool.name} did not end within {self._seconds(tool):g} s"
            f"{', the limit that `[agent] tool_seconds` sets' if by_setting else ''}: {error.hint}. "
            "It may have done a part of its work."
        )

    async def _dispatch(
        self, tool: Tool, arguments: dict[str, Any], ctx: ToolCallContext, key: str, said: Decisions
    ) -> ToolAnswer:
        call = new_call(ctx.origin, ctx.hooks, seconds=self._seconds(tool))
        params = {"tool": tool.name, "arguments": arguments, "call": ctx.call}
        self._under_way[call.id] = under_way = _UnderWay(tool, ctx)
        try:
            result = await self.broker.dispatch(call, _OP, params, key=key, own=self._op(tool.level), decisions=said)
        finally:
            del self._under_way[call.id]
        answer = ToolAnswer.model_validate(result)
        return answer if under_way.ran else answer.noting(replayed=True)

    def _op(self, level: Level) -> BoundOp:
        """The op that runs tools of a level."""
        if level not in self._ops:
            spec = OpSpec(
                name=_OP,
                handler=self._run,
                params=ToolCallParams,
                result=ToolAnswer,
                level=level,
                timeout=LONGEST_CALL,
                idempotent=False,
                record=("tool", "arguments", "call"),
                foreign_names=True,
            )
            self._ops[level] = BoundOp.own(spec, plugin="agent")
        return self._ops[level]

    async def _run(self, params: ToolCallParams, own: OpContext) -> ToolAnswer:
        """The handler of the op."""
        under_way = self._under_way[own.call]
        under_way.ran = True
        answer = await self._answer(under_way.tool, params.arguments, under_way.ctx)
        return answer.noting(effect=own.effect)

    async def _answer(self, tool: Tool, arguments: dict[str, Any], ctx: ToolCallContext) -> ToolAnswer:
        try:
            output = await tool.run(arguments, ctx)
            if not isinstance(output, ToolOutput):
                output = ToolOutput(output)
            return await self._fitted(output, of_skill=_is_of_skill(tool))
        except SidebandError as error:
            return await self._failed(_told(error), error.code)
        except Exception as error:  # noqa: BLE001  a tool may raise anything, and return what can't be shown
            return await self._failed(f"{tool.name} failed: {type(error).__name__}: {safe_text(error)}", "tool.failed")

    async def _failed(self, text: str, code: str) -> ToolAnswer:
        return (await self._fitted(ToolOutput(text, is_error=True), of_skill=False)).noting(code=code)

    async def _fitted(self, output: ToolOutput, *, of_skill: bool) -> ToolAnswer:
        """The answer, with texts that are too long cut, and the whole kept."""
        content: list[Any] = []
        handles: list[str] = []
        parts = fitted_parts(output.content)
        texts = sum(isinstance(part, TextPart) for part in parts)
        for part in parts:
            if isinstance(part, TextPart):
                text, handle = await self.results.shown(self.broker.redactor.text(part.text), share=texts)
                handles += [handle] if handle else []
                content.append(TextPart(text=text))
            else:
                content.append(part)
        known = {"output": handles[0]} if handles else {}
        return ToolAnswer(
            content=tuple(content),
            is_error=bool(output.is_error),
            terminate=bool(output.terminate),
            metadata={**fitted_metadata(output.metadata, of_skill=of_skill), **known},
        )


def is_repeatable(tool: Tool) -> bool:
    """Whether a call of the tool does no harm if it was made before."""
    return tool.read_only or tool.level is Level.SAFE


def _is_of_skill(tool: Tool) -> bool:
    return tool.source.startswith("skill ")


def _told(error: SidebandError) -> str:
    return f"{error.message}. {error.hint}" if error.hint else error.message


def _unknown(tool: Tool, error: OpError) -> ToolAnswer:
    return ToolAnswer.error(
        f"It is not known whether {tool.name} did its work: the process ended while it was under way, and it was not "
        f"repeated. Find out how things stand before you decide what to do. ({_told(error)})",
        code=error.code,
        unknown=True,
    )
