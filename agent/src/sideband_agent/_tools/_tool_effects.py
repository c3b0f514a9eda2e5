"""One tool call as an effect: claimed by its key, recorded before it runs, and never run again once it is recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from secrets import token_hex
from typing import Any

import anyio
from attrs import define, field
from pydantic import BaseModel, ConfigDict
from sideband.broker import BoundOp, Broker, Call, KeyReused, safe_text
from sideband.errors import SidebandError
from sideband.messages import TextPart
from sideband.ops import EffectInFlight, EffectUnknown, Grant, Level, OpContext, OpError, OpFamily, OpSpec, OpTimeout
from sideband.plugins import LoadedPlugin, PluginRecord
from sideband.plugins._bare_context import BareContext
from sideband.tools import Tool, ToolOutput

from .._contexts import ToolCallContext
from .._version import __version__
from ._long_results import Outputs
from ._result_parts import fitted_metadata, fitted_parts

__all__ = ["Decisions", "ToolAnswer", "ToolEffects", "is_repeatable"]

_OP = "tool.call"
_LONGEST = 86_400.0

Decisions = Sequence[Mapping[str, Any]]
"""What guards said of a call, as the record keeps it."""


class _Params(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    tool: str
    arguments: dict[str, Any]
    call: str


class ToolAnswer(BaseModel):
    """What a tool answered, as the record keeps it.

    Attributes:
        content: message parts, as data.
        is_error: whether the tool failed.
        terminate: whether the run may end with it.
        metadata: what is known about it and not sent to the model.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    content: list[dict[str, Any]]
    is_error: bool = False
    terminate: bool = False
    metadata: dict[str, Any] = {}

    @classmethod
    def error(cls, text: str, **metadata: Any) -> ToolAnswer:
        """An answer that says why there is no result."""
        return cls(content=[{"type": "text", "text": text}], is_error=True, metadata=metadata)

    def noting(self, **metadata: Any) -> ToolAnswer:
        """The same with more metadata: ``replayed``, for instance, if the call ran before and its record answers."""
        return self.model_copy(update={"metadata": {**self.metadata, **metadata}})


@define(eq=False)
class ToolEffects:
    """Runs tools of one agent's session.

    Args:
        broker: records and claims.
        outputs: keeps what is too long for the model.
        seconds: for tools that name no limit of their own.
    """

    broker: Broker = field(repr=False)
    outputs: Outputs = field(repr=False)
    seconds: float

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
            return await self._dispatch(tool, arguments, ctx, ctx.key, said)
        except (EffectInFlight, EffectUnknown, KeyReused) as error:
            if is_repeatable(tool):
                return await self._dispatch(tool, arguments, ctx, f"{ctx.key}~{token_hex(4)}", said)
            return _unknown(tool, error)
        except OpTimeout as error:
            return ToolAnswer.error(_told(error) + " It may have done a part of its work.", code=error.code)
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
        effect = await self.broker.refuse(self._call(ctx), _REFUSED, params, error, decisions=said)
        plugin = {"plugin": error.plugin} if error.plugin else {}
        return ToolAnswer.error(error.message, code=error.code, effect=effect, **plugin)

    def _call(self, ctx: ToolCallContext) -> Call:
        return Call(
            id=token_hex(16),
            grant=Grant.of(()),
            domain=f"agent:{ctx.agent.session.id}",
            origin=ctx.origin,
            deadline=anyio.current_time() + self.seconds,
            hooks=ctx.hooks,
        )

    async def _dispatch(
        self, tool: Tool, arguments: dict[str, Any], ctx: ToolCallContext, key: str, said: Decisions
    ) -> ToolAnswer:
        ran = False
        call = self._call(ctx)
        call.deadline = anyio.current_time() + (tool.timeout or self.seconds)

        async def handler(params: _Params, own: OpContext) -> dict[str, Any]:
            nonlocal ran
            ran = True
            answer = await self._answer(tool, params.arguments, ctx)
            return answer.noting(effect=own.effect).model_dump()

        params = {"tool": tool.name, "arguments": arguments, "call": ctx.call}
        result = await self.broker.dispatch(call, _OP, params, key=key, own=_bound(handler, tool.level), decisions=said)
        answer = ToolAnswer.model_validate(result)
        return answer if ran else answer.noting(replayed=True)

    async def _answer(self, tool: Tool, arguments: dict[str, Any], ctx: ToolCallContext) -> ToolAnswer:
        try:
            output = await tool.run(arguments, ctx)
            if not isinstance(output, ToolOutput):
                output = ToolOutput(output)
            return await self._shown(output, of_skill=tool.source.startswith("skill "))
        except SidebandError as error:
            return await self._failed(_told(error), error.code)
        except Exception as error:  # noqa: BLE001  a tool may raise anything, and return what can't be shown
            return await self._failed(f"{tool.name} failed: {type(error).__name__}: {safe_text(error)}", "tool.failed")

    async def _failed(self, text: str, code: str) -> ToolAnswer:
        answer = await self._shown(ToolOutput(text, is_error=True), of_skill=False)
        return answer.model_copy(update={"metadata": {**answer.metadata, "code": code}})

    async def _shown(self, output: ToolOutput, *, of_skill: bool) -> ToolAnswer:
        """The answer, with texts that are too long cut, and the whole kept."""
        content: list[dict[str, Any]] = []
        handles: list[str] = []
        parts = fitted_parts(output.content)
        texts = sum(isinstance(part, TextPart) for part in parts)
        for part in parts:
            if isinstance(part, TextPart):
                text, handle = await self.outputs.shown(self.broker.redactor.text(part.text), share=texts)
                handles += [handle] if handle else []
                content.append({"type": "text", "text": text})
            else:
                content.append(part.model_dump())
        known = {"output": handles[0]} if handles else {}
        return ToolAnswer(
            content=content,
            is_error=bool(output.is_error),
            terminate=bool(output.terminate),
            metadata={**fitted_metadata(output.metadata, of_skill=of_skill), **known},
        )


def is_repeatable(tool: Tool) -> bool:
    """Whether a call of the tool does no harm if it was made before."""
    return tool.read_only or tool.level is Level.SAFE


def _told(error: SidebandError) -> str:
    return f"{error.message}. {error.hint}" if error.hint else error.message


def _unknown(tool: Tool, error: OpError) -> ToolAnswer:
    return ToolAnswer.error(
        f"It is not known whether {tool.name} did its work: the process ended while it was under way, and it was not "
        f"repeated. Find out how things stand before you decide what to do. ({_told(error)})",
        code=error.code,
        unknown=True,
    )


def _bound(handler: Callable[[Any, OpContext], Awaitable[Any]], level: Level = Level.SAFE) -> BoundOp:
    spec = OpSpec(
        name=_OP,
        handler=handler,
        params=_Params,
        result=dict[str, Any],
        level=level,
        timeout=_LONGEST,
        idempotent=False,
        record=("tool", "arguments", "call"),
        foreign_names=True,
    )
    return BoundOp(spec, OpFamily("tool", (spec,)), _CORE)


_CORE = LoadedPlugin(
    PluginRecord("op", "agent", distribution="sideband-core", version=__version__),
    value=None,
    contribution=None,
    config=None,
    context=BareContext("agent", None, None),  # type: ignore[arg-type]  # it has no home, and nothing asks for one
)


async def _never_run(_params: _Params, _ctx: OpContext) -> Any:
    raise AssertionError("what was refused is not run")


_REFUSED = _bound(_never_run)
