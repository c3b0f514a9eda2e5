"""Records each dispatch: its intent, its one outcome, and the report to those who watch."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any

import anyio
from anyio import CancelScope
from attrs import evolve, frozen

from ..hooks import Effect, HookRegistry
from ..ledger import Intent, Ledger, Outcome, Status
from ..ops import Level, OpCancelled, OpDenied, OpError, OpTimeout, Origin
from ._call import EffectReport
from ._claims import Claims, Replay
from ._dispatch import Dispatch
from ._errors import safe_text
from ._redaction import Redaction, Unserializable
from ._values import digest_of, shortened

_log = logging.getLogger("sideband.broker")


@frozen
class EffectRecorder:
    """Writes to the ledger what happens to dispatches, and settles their idempotency keys.

    Args:
        ledger: the record.
        claims: the keys.
        redactor: takes what is secret out of what is written.
        hooks: told of effects whose call names no others.
    """

    _ledger: Ledger
    _claims: Claims
    _redactor: Redaction
    _hooks: HookRegistry

    def recordable(self, params: Mapping[str, Any], allowed: Iterable[str]) -> dict[str, Any]:
        """Return the parameters as a record may hold them: those in ``allowed``, redacted; of others the names."""
        shown = {name: params[name] for name in allowed if name in params}
        hidden = dict.fromkeys((self._redactor.text(str(name))[:40] for name in params if name not in shown), "…")
        try:
            return {**hidden, **shortened(self._redactor.data(shown))}
        except Unserializable:
            return dict.fromkeys([*hidden, *shown], "…")

    async def intend(self, dispatch: Dispatch) -> Replay | None:
        """Take the key and write the intent, on the disk where the op needs that.

        Returns:
            What the effect of this key answered before; ``None`` if it may run now.

        Raises:
            LedgerError: it could not be recorded, and must not run.
            OpError: the key is taken, or the call's time is up.
        """
        spec = dispatch.found.spec
        if dispatch.call.deadline <= anyio.current_time():
            raise OpTimeout(dispatch.op, 0)
        digest = ""
        if dispatch.key is not None or dispatch.call.key is not None:
            digest = digest_of(dispatch.valid)
            if dispatch.key is None and not spec.idempotent:
                dispatch.key = dispatch.call.effect_key(dispatch.op, digest)
        if dispatch.key is not None:
            with CancelScope(shield=True):
                # A claim that nobody knows to be his would never be given back.
                replay = await self._claims.take(dispatch.key, effect=dispatch.effect, op=dispatch.op, digest=digest)
            if replay is not None:
                return replay
        intent = Intent(
            effect=dispatch.effect,
            key=dispatch.key,
            op=dispatch.op,
            params=dispatch.recorded,
            grant=tuple(dispatch.covering),
            origin=dispatch.origin,
            level=spec.level,
            decisions=tuple(dispatch.decisions),
            isolation=dispatch.call.isolation,
            granted_by=dispatch.call.givers(dispatch.covering),
            within=dispatch.within,
        )
        try:
            await self._ledger.intent(intent, durable=spec.durable)
        except BaseException:
            # Nothing has happened, and nothing will: the key must not stay taken.
            if dispatch.key is not None:
                with CancelScope(shield=True):
                    await self._claims.settle(dispatch.key, "failed")
            raise
        dispatch.intended = True
        return None

    async def done(self, dispatch: Dispatch, result: Any, size: int) -> None:
        """Record a result. It is kept if the effect has a key."""
        await self._outcome(dispatch, "done", size=size, result=result if dispatch.key else None)

    async def settle(self, dispatch: Dispatch, status: Status, error: OpError) -> OpError:
        """Record how an effect that was begun ended without a result, and return the error to answer with."""
        self._redactor.error(error)
        await self._outcome(dispatch, status, error=error)
        return error

    async def refuse(self, dispatch: Dispatch, error: OpError) -> None:
        """Record a dispatch that was ended before it became an effect: an outcome without intent."""
        status: Status = "failed"
        if isinstance(error, OpDenied):
            status = "denied"
        elif isinstance(error, OpCancelled):
            status = "cancelled"
        dispatch.key = None
        await self.settle(dispatch, status, error)

    async def of_worker(self, op: str, origin: Origin, code: str, message: str) -> None:
        """Record something that a worker tried and that never became a dispatch."""
        await self._ledger.outcome(
            Outcome(
                effect=self._ledger.new_effect_id(),
                op=self._redactor.text(op)[:200],
                status="denied",
                error={"code": code, "message": self._redactor.text(message)[:2_000]},
                origin=origin,
            )
        )

    async def _outcome(
        self, dispatch: Dispatch, status: Status, *, error: OpError | None = None, size: int = 0, result: Any = None
    ) -> None:
        outcome = Outcome(
            effect=dispatch.effect,
            key=dispatch.key,
            op=self._redactor.text(dispatch.op)[:200],
            status=status,
            error=error.as_dict() if error else None,
            ms=round((perf_counter() - dispatch.started) * 1000, 3),
            bytes=size,
            result=result,
            note=dispatch.note,
        )
        if not dispatch.intended:
            # Nothing was said of it before: a refusal is an outcome without intent.
            outcome = evolve(
                outcome,
                params=dispatch.recorded,
                grant=dispatch.grant.texts(),
                origin=dispatch.origin,
                level=dispatch.level,
                decisions=tuple(dispatch.decisions),
                isolation=dispatch.call.isolation,
                within=dispatch.within,
            )
        with CancelScope(shield=True):
            await self._ledger.outcome(outcome, durable=dispatch.key is not None)
            if dispatch.key is not None:
                certain = status == "done" or dispatch.found.spec.idempotent
                certain = certain or (error is not None and error.nothing_happened)
                await self._claims.settle(dispatch.key, status if certain else "unknown", result)
            await self._tell(dispatch, outcome)

    async def _tell(self, dispatch: Dispatch, outcome: Outcome) -> None:
        error, ms = outcome.error, outcome.ms or 0.0
        if dispatch.call.on_effect is not None:
            allowed_by = " ".join(dispatch.covering) or "needs none"
            decision = error["message"] if error and outcome.status == "denied" else allowed_by
            report = EffectReport(outcome.effect, outcome.op, outcome.status, decision, ms, dispatch.recorded, error)
            try:
                dispatch.call.on_effect(report)
            except Exception as raised:  # noqa: BLE001  whoever watches must not change what is watched
                _log.warning("a listener to effects failed: %s", self._redactor.text(safe_text(raised)))
        hooks = dispatch.call.hooks or self._hooks
        if hooks.has("effect"):
            await hooks.observe(
                Effect(
                    effect=outcome.effect,
                    op=outcome.op,
                    status=outcome.status,
                    level=dispatch.level or Level.SAFE,
                    origin=dispatch.origin,
                    params=dispatch.recorded,
                    grant=tuple(dispatch.covering),
                    decisions=dispatch.decisions,
                    error=error,
                    ms=ms,
                    bytes=outcome.bytes,
                    isolation=dispatch.call.isolation,
                )
            )
