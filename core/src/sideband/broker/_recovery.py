"""After a crash: what became of the effects that were begun and never recorded as ended."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from anyio import current_time, fail_after
from attrs import frozen

from ..ledger import Intent, Ledger, Outcome, Status
from ..ops import Grant, OpError, Reconciled
from ._broker import Broker
from ._call import Call
from ._claims import Claims
from ._lookup import OWN_OPS

_log = logging.getLogger("sideband.broker")
_RECONCILE_SECONDS = 30.0


@frozen
class Recovered:
    """One effect that a dead host left open.

    Args:
        status: ``done`` or ``failed`` if the world could be asked, else ``unknown``.
    """

    effect: str
    op: str
    status: str


async def recover(broker: Broker, ledger: Ledger, claims: Claims) -> Sequence[Recovered]:
    """Settle the intents without outcome of hosts that are gone: asked about where the op can, else ``unknown``."""
    recovered = []
    for intent in await ledger.orphans():
        status, result, repeatable = await _reconcile(broker, intent)
        await ledger.outcome(_outcome(intent, status, result), durable=True)
        if intent.key is not None:
            await claims.settle(intent.key, "repeatable" if repeatable else status, result)
        recovered.append(Recovered(intent.effect, intent.op, status))
    return recovered


async def _reconcile(broker: Broker, intent: Intent) -> tuple[Status, Any, bool]:
    """What became of it, the answer to keep for its key, and whether it may be done again with that key."""
    try:
        with fail_after(_RECONCILE_SECONDS):
            reconciled = await _ask(broker, intent)
        if reconciled is None or reconciled.repeatable:
            return "unknown", None, reconciled is not None
        status: Status = "done" if reconciled.happened else "failed"
        result = broker.redactor.data(reconciled.result) if intent.key else None
    except OpError as error:
        level = logging.INFO if intent.op in OWN_OPS else logging.WARNING
        _log.log(level, "what became of effect %s can't be asked: %s", intent.effect, error.message)
    except Exception as error:  # noqa: BLE001  a plugin that can't tell must not keep the host from starting
        _log.warning("asking what became of effect %s failed: %s", intent.effect, type(error).__name__)
    else:
        return status, result, False
    return "unknown", None, False


async def _ask(broker: Broker, intent: Intent) -> Reconciled | None:
    bound = await broker.ops.get(intent.op)
    if bound.spec.reconcile is None:
        return None
    call = Call(
        id=intent.effect,
        grant=Grant.parse(intent.grant),
        domain=intent.effect,
        origin=intent.origin,
        deadline=current_time() + _RECONCILE_SECONDS,
    )
    try:
        return await broker.ask(bound.spec.reconcile, bound, call, intent)
    finally:
        await call.end(lambda error: _log.warning("closing what asking left open failed: %s", type(error).__name__))


def _outcome(intent: Intent, status: Status, result: object) -> Outcome:
    error = None
    if status != "done":
        known = "it did not happen" if status == "failed" else "whether it happened is not known"
        error = {"code": f"effect.{status}", "message": f"the host ended while it was under way; {known}", "hint": ""}
    return Outcome(
        effect=intent.effect,
        op=intent.op,
        status=status,
        key=intent.key,
        error=error,
        result=result,
        note=intent.note,
    )
