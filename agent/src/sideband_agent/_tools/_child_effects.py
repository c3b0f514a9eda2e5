"""Record the children of a tool call as its effects, so that a call that runs again does not repeat theirs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict
from sideband.broker import BoundOp, Broker, Call
from sideband.messages import Usage
from sideband.ops import Level, OpContext, OpError, OpSpec

from .._run import RunResult, RunStatus

_OP = "agent.child"


class _ChildParams(BaseModel):
    """What a child is asked to do. Its task is not recorded: the record has a digest of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prompt: str
    tools: Sequence[str] | None
    share: float


class _ChildAnswer(BaseModel):
    """The result of a child's run, without its messages."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    status: RunStatus
    text: str
    usage: Usage
    error: dict[str, Any] | None
    run: str
    session: str
    resume_at: float | None


async def recorded_child(
    broker: Broker, call: Call, params: dict[str, Any], spawn: Callable[[], Awaitable[RunResult]]
) -> RunResult:
    """Run a child as an effect of a call, or return the recorded result of the child that an earlier attempt ran.

    Args:
        broker: records the effect.
        call: the call with the attempt.
        params: what the child is asked to do.
        spawn: runs the child.

    Raises:
        OpError: if an earlier attempt was interrupted while it ran this child.
    """
    result: RunResult | None = None
    failure: Exception | None = None

    async def run(params: _ChildParams, own: OpContext) -> _ChildAnswer:  # noqa: ARG001  the signature of a handler
        nonlocal result, failure
        try:
            result = await spawn()
        except Exception as error:
            failure = error
            raise
        names = _ChildAnswer.model_fields
        return _ChildAnswer(**{name: getattr(result, name) for name in names})

    spec = OpSpec(
        name=_OP, handler=run, params=_ChildParams, result=_ChildAnswer, level=Level.MONITORED, record=("tools",)
    )
    try:
        found = await broker.dispatch(call, _OP, params, own=BoundOp.own(spec, plugin="agent"))
    except OpError:
        if failure is not None:
            raise failure from None  # as without a record
        raise
    return result or RunResult(**_ChildAnswer.model_validate(found).__dict__)
