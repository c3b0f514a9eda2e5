"""Record the children of a tool call as its effects, so that a call that runs again does not repeat theirs.

A child that had ended is answered from the record. One that was interrupted continues from its own session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict
from sideband.approvals import ApprovalNeeded
from sideband.broker import CONTINUES, BoundOp, Broker, Call
from sideband.messages import Usage
from sideband.ops import EffectUnknown, Level, OpContext, OpError, OpSpec

from .._child_sessions import CHILD_OP
from .._run import RunResult, RunStatus


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
    broker: Broker, call: Call, params: dict[str, Any], spawn: Callable[[str], Awaitable[RunResult]]
) -> RunResult:
    """Run or continue a child as an effect of a call, or return its recorded result if it had ended.

    Args:
        broker: records the effect.
        call: the call with the attempt.
        params: what the child is asked to do.
        spawn: runs or continues the child of the effect with this key.

    Raises:
        ApprovalNeeded: if the child waits for an approval, and the call can run again.
        EffectUnknown: if the session of a child that was interrupted is lost. The call causes no further effects.
    """
    attempt = call.attempt
    assert attempt is not None  # noqa: S101  see above
    call.note = {CONTINUES: True}
    result: RunResult | None = None
    failure: Exception | None = None

    async def run(params: _ChildParams, own: OpContext) -> _ChildAnswer:  # noqa: ARG001  the signature of a handler
        nonlocal result, failure
        try:
            result = await spawn(attempt.key_of(own.effect))
        except Exception as error:
            failure = error
            raise
        if attempt.parks and result.requests:
            # The child continues, with this effect, once its request is answered.
            needed = ApprovalNeeded((await broker.approvals.get(result.requests[0])).request)
            attempt.wait_for(needed)
            raise needed
        names = _ChildAnswer.model_fields
        return _ChildAnswer(**{name: getattr(result, name) for name in names})

    spec = OpSpec(
        name=CHILD_OP,
        handler=run,
        params=_ChildParams,
        result=_ChildAnswer,
        level=Level.MONITORED,
        record=("tools",),
        egress=False,
    )
    try:
        found = await broker.dispatch(call, CHILD_OP, params, own=BoundOp.own(spec, plugin="agent", replayed=False))
    except OpError:
        if isinstance(failure, EffectUnknown) and attempt.stops:
            attempt.unknown = attempt.unknown or failure
        if failure is not None:
            raise failure from None  # as without a record
        raise
    return result or RunResult(**_ChildAnswer.model_validate(found).__dict__)
