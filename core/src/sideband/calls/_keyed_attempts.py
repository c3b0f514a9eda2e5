"""Attempts to run a call that its caller repeats with the same idempotency key, outside of agents."""

from __future__ import annotations

from functools import cache
from itertools import count

from attrs import evolve
from pydantic import BaseModel, ConfigDict

from ..broker import Attempt, BoundOp, Broker, Call
from ..hooks import HookRegistry
from ..ops import EffectUnknown, Grant, Level, OpContext, OpSpec

_OP = "skill.begin"
_NO_RIGHTS = Grant()
_MOST_BEGINNINGS = 8


class Beginning(BaseModel):
    """What all calls with the same key have in common.

    Attributes:
        call: the id of the first of them.
        started: the time at which it began.
        seed: the seed of its random numbers.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    call: str
    started: str
    seed: str


class _Key(BaseModel):
    """No parameters: equal keys have equal parameters, whichever call asks first."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


async def attempt_with_key(broker: Broker, call: Call, key: str) -> Attempt:
    """Return the attempt of a call that its caller repeats with this key, after recording the beginning of the first.

    Only the caller knows how often it may repeat the call.

    Raises:
        EffectUnknown: if too many beginnings were interrupted.
        LedgerError: if the beginning of the call cannot be recorded.
    """
    first = Attempt.first(key)
    own = Call(
        id=call.id,
        grant=_NO_RIGHTS,
        domain=call.domain,
        origin=evolve(call.origin, plugin="host"),
        deadline=call.deadline,
        hooks=_no_hooks(),
    )
    begin = _begin(Beginning(call=call.id, started=first.started, seed=first.seed))
    for number in count():
        try:
            found = await broker.dispatch(own, _OP, {}, key=f"{key}:begin~{number}", own=begin)
            break
        except EffectUnknown:
            if number == _MOST_BEGINNINGS:
                raise  # the host died here each time, before the call began
    begun = Beginning.model_validate(found)
    if begun.call == call.id:
        return first
    principal = call.origin.principal
    return await broker.attempts.again(key, principal=principal, started=begun.started, seed=begun.seed, stops=False)


@cache
def _no_hooks() -> HookRegistry:
    """Return an empty registry: guards decide about the effects of a call, not about its record."""
    return HookRegistry()


def _begin(beginning: Beginning) -> BoundOp:
    """Return the op whose recorded result is the beginning of a call."""

    async def handle(params: _Key, own: OpContext) -> Beginning:  # noqa: ARG001  the signature of a handler
        return beginning

    spec = OpSpec(name=_OP, handler=handle, params=_Key, result=Beginning, level=Level.SAFE, egress=False)
    return BoundOp.own(spec, plugin="host")
