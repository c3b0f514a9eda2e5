"""Recovery after a crash: settle the effects that have an intent but no outcome."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from anyio import current_time, fail_after
from attrs import frozen

from ..ledger import EffectRecord, Intent, Ledger, Outcome, Status
from ..ops import Grant, OpError, Reconciled
from ._attempt import CONTINUES, is_read
from ._broker import Broker
from ._call import Call
from ._claims import Claims
from ._lookup import OWN_OPS
from ._spec_calls import call_spec

_log = logging.getLogger("sideband.broker")
_RECONCILE_SECONDS = 30.0


@frozen
class Recovered:
    """An effect of a dead host that had no outcome.

    Args:
        effect: the id of the effect.
        op: the name of the op.
        status: ``done`` or ``failed`` if the op could determine it, else ``unknown``.
    """

    effect: str
    op: str
    status: str


async def recover(broker: Broker, ledger: Ledger, claims: Claims) -> Sequence[Recovered]:
    """Settle the unsettled effects of dead hosts: reconcile them if the op supports it, else record ``unknown``."""
    recovered = []
    for intent in await ledger.orphans():
        status, result, repeatable = await _reconcile(broker, intent)
        outcome = _outcome(intent, status, result, repeatable=repeatable)
        await ledger.outcome(outcome, due=True)
        if intent.key is not None and not is_read(intent.key):
            await claims.settle(outcome, intent.origin)
        recovered.append(Recovered(intent.effect, intent.op, status))
    if not claims.in_ledger:
        for record in ledger.ended():
            # Its host may have died after it wrote the outcome to the ledger, and before it stored it.
            if not record.erased and record.status is not None and not is_read(record.key or ""):
                await claims.settle(_ended(record), record.origin, is_late=True)
    return recovered


async def _reconcile(broker: Broker, intent: Intent) -> tuple[Status, Any, bool]:
    """Return the status of an effect, the result to store for its key, and whether the key may be used again."""
    if intent.op in OWN_OPS and CONTINUES in intent.note:
        return "unknown", None, True
    try:
        with fail_after(_RECONCILE_SECONDS):
            reconciled = await _ask(broker, intent)
        if reconciled is None or reconciled.repeatable:
            return "unknown", None, reconciled is not None
        status: Status = "done" if reconciled.happened else "failed"
        result = broker.redactor.data(reconciled.result) if intent.key else None
    except OpError as error:
        level = logging.INFO if intent.op in OWN_OPS else logging.WARNING
        _log.log(level, "cannot reconcile effect %s: %s", intent.effect, error.message)
    except Exception as error:  # noqa: BLE001  a failing plugin must not prevent the host from starting
        _log.warning("reconciling effect %s failed: %s", intent.effect, type(error).__name__)
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
        return await call_spec(broker, bound.spec.reconcile, bound, call, intent)
    finally:
        await call.end(lambda error: _log.warning("cleanup after reconciling failed: %s", type(error).__name__))


def _ended(record: EffectRecord) -> Outcome:
    return Outcome(
        effect=record.effect,
        op=record.op,
        status=record.status or "unknown",
        key=record.key,
        result=record.result,
        state=record.state,
        rights=record.rights,
    )


def _outcome(intent: Intent, status: Status, result: object, *, repeatable: bool) -> Outcome:
    error = None
    if status != "done":
        known = "it did not happen" if status == "failed" else "it is unknown whether it happened"
        error = {"code": f"effect.{status}", "message": f"the host died during the effect; {known}", "hint": ""}
    return Outcome(
        effect=intent.effect,
        op=intent.op,
        status=status,
        key=intent.key,
        error=error,
        result=result,
        state="repeatable" if repeatable else status,
        note=intent.note,
    )
