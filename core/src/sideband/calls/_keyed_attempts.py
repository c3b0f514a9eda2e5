"""Attempts to run a call that its caller repeats with the same idempotency key, outside of agents."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import count
from typing import Any

from attrs import evolve
from pydantic import BaseModel, ConfigDict

from ..broker import Attempt, BoundOp, Broker, Call
from ..hooks import HookRegistry
from ..ops import EffectUnknown, Grant, Level, OpContext, OpSpec

_OP = "skill.begin"
_NO_RIGHTS = Grant()
_MOST_BEGINNINGS = 8


class Beginning(BaseModel):
    """What a call has in common with its replays.

    Attributes:
        started: the time at which it began.
        seed: the seed of its random numbers.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    started: str
    seed: str


class _KeyedBeginning(Beginning):
    """What all calls with the same key have in common: also the id of the first of them."""

    call: str


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
    own = _own_call(call)
    begin = _begin(_KeyedBeginning(call=call.id, started=first.started, seed=first.seed))
    for number in count():
        try:
            found = await broker.dispatch(own, _OP, {}, key=f"{key}:begin~{number}", own=begin)
            break
        except EffectUnknown:
            if number == _MOST_BEGINNINGS:
                raise  # the host died here each time, before the call began
    begun = _KeyedBeginning.model_validate(found)
    if begun.call == call.id:
        return first
    principal = call.origin.principal
    return await broker.attempts.again(key, principal=principal, started=begun.started, seed=begun.seed, stops=False)


class _Requested(BaseModel):
    """The call that begins, for those who read a cassette."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    tool: str
    arguments: dict[str, Any]


async def recorded_beginning(
    broker: Broker, call: Call, tool: str, arguments: Mapping[str, Any], attempt: Attempt | None
) -> Beginning:
    """Return the beginning of a call whose effects are on a cassette, which has it too.

    Raises:
        OpError: if the cassette does not have it, since it is replayed.
    """
    begun = attempt or Attempt.first("")
    begin = _begin(Beginning(started=begun.started, seed=begun.seed), params=_Requested)
    requested = {"tool": tool, "arguments": arguments}
    return Beginning.model_validate(await broker.dispatch(_own_call(call), _OP, requested, own=begin))


def _own_call(call: Call) -> Call:
    """Return a call of the host for the record of a call."""
    origin = evolve(call.origin, plugin="host")
    own = Call(
        id=call.id, grant=_NO_RIGHTS, domain=call.domain, origin=origin, deadline=call.deadline, hooks=_no_hooks()
    )
    own.scope = call.scope
    return own


@cache
def _no_hooks() -> HookRegistry:
    """Return an empty registry: guards decide about the effects of a call, not about its record."""
    return HookRegistry()


def _begin(beginning: Beginning, *, params: type[BaseModel] = _Key) -> BoundOp:
    """Return the op whose recorded result is the beginning of a call."""

    async def handle(params: BaseModel, own: OpContext) -> Beginning:  # noqa: ARG001  the signature of a handler
        return beginning

    spec = OpSpec(name=_OP, handler=handle, params=params, result=type(beginning), level=Level.SAFE, egress=False)
    return BoundOp.own(spec, plugin="host", replayed=params is not _Key)
