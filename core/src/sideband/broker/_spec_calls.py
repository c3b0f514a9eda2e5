"""Call functions of an op's spec that look at the record of an earlier effect: ``reconcile`` and ``undo``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from ..contexts import HandlerContext
from ..ledger import Intent
from ..ops import Recorded
from ._call import Call
from ._lookup import BoundOp
from ._values import recorded_of

if TYPE_CHECKING:
    from ._broker import Broker

_Answer = TypeVar("_Answer")


async def call_spec(
    broker: Broker,
    function: Callable[[Recorded, HandlerContext], Awaitable[_Answer]],
    bound: BoundOp,
    call: Call,
    record: Intent,
) -> _Answer:
    """Call a function of an op's spec with the record of an earlier effect.

    Args:
        broker: the broker, which makes the context.
        function: the function of the spec.
        bound: the op.
        call: the call whose grant applies.
        record: the ledger's record of the effect.
    """
    context = broker.context(bound.plugin, call, op=record.op, effect=record.effect, deadline=call.deadline)
    try:
        return await function(recorded_of(record), context)
    finally:
        context.end()
