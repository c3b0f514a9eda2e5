"""Record the intent and the outcome of each dispatch, and report them to listeners."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from time import perf_counter
from typing import Any

import anyio
from anyio import CancelScope
from attrs import evolve, frozen

from ..hooks import Effect, HookRegistry
from ..ledger import Intent, Ledger, LedgerError, Outcome, Status
from ..ops import Level, OpCancelled, OpDenied, OpError, OpParamsInvalid, OpTimeout, Origin
from ._call import EffectReport
from ._claims import UNDO, Claims, Replay
from ._dispatch import Dispatch
from ._errors import KeyReused, safe_text
from ._gate import check_used
from ._redaction import Redaction, Unserializable
from ._values import digest_of, secret_fields, shortened

_log = logging.getLogger("sideband.broker")


@frozen
class EffectRecorder:
    """The recorder of dispatches, which writes to the ledger and settles idempotency keys.

    Args:
        ledger: the ledger.
        claims: the claims on idempotency keys.
        redactor: the redaction of everything that is written.
        hooks: the hooks that observe effects, unless the call has its own.
    """

    _ledger: Ledger
    _claims: Claims
    _redactor: Redaction
    _hooks: HookRegistry

    def recordable(self, params: Mapping[str, Any], allowed: Iterable[str]) -> dict[str, Any]:
        """Return the recordable parameters: those in ``allowed`` redacted, of the others only the names."""
        shown = {name: params[name] for name in allowed if name in params}
        hidden: dict[str, str] = {}
        if len(shown) < len(params):
            hidden = dict.fromkeys((self._redactor.text(str(name))[:40] for name in params if name not in shown), "…")
        try:
            return {**hidden, **shortened(self._redactor.data(shown))}
        except Unserializable:
            return dict.fromkeys([*hidden, *shown], "…")

    async def intend(self, dispatch: Dispatch) -> Replay | None:
        """Write the intent, synced to disk if the op is durable. This claims the key.

        Returns:
            The result of the earlier effect with this key, or ``None`` if the effect may run now.

        Raises:
            LedgerError: if the intent could not be written. The effect must not run.
            OpError: if the key is claimed by another effect, or the deadline of the call has passed.
            OpDenied: if the grant does not cover what the earlier effect used.
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
            if name := self._redactor.unbound(dispatch.key, None):
                raise OpParamsInvalid(dispatch.op, f"the idempotency key contains the secret `{name}`")
            if dispatch.key.startswith(UNDO) and not dispatch.call.domain.startswith(UNDO):
                raise KeyReused(dispatch.op, dispatch.key)
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
            code=dispatch.call.code,
            # Which of its rights the effect uses is known only when it ends.
            rights=() if dispatch.key is None else dispatch.grant.texts(),
            params_digest=digest,
        )
        try:
            if dispatch.key is None:
                await self._ledger.intent(intent, durable=spec.durable)
            else:
                replay = await self._claims.take(intent, durable=spec.durable)
                if replay is not None:
                    self._check(dispatch, replay)
                    return replay
        except BaseException as raised:
            # The effect did not happen and never will. If its intent was written, an outcome follows.
            dispatch.intended = self._ledger.is_running(dispatch.effect)
            if dispatch.intended and isinstance(raised, LedgerError):
                with suppress(LedgerError):
                    await self.refuse(dispatch, dispatch.error(raised))
            raise
        dispatch.intended = True
        return None

    def _check(self, dispatch: Dispatch, replay: Replay) -> None:
        """Check that this dispatch may have the stored result."""
        if secret_fields(dispatch.valid):
            # No digest of a secret is stored, so it is unknown whether the parameters are equal.
            raise KeyReused(dispatch.op, dispatch.key or "")
        check_used(dispatch.grant, dispatch.op, replay.rights)
        dispatch.used.update(replay.rights.capabilities)

    async def done(self, dispatch: Dispatch, result: Any, size: int) -> None:
        """Record a success. The result is stored if the effect has a key."""
        await self._outcome(dispatch, "done", size=size, result=result if dispatch.key else None)

    async def settle(self, dispatch: Dispatch, status: Status, error: OpError) -> OpError:
        """Record the outcome of an effect that ended without a result, and return the redacted error."""
        self._redactor.error(error)
        await self._outcome(dispatch, status, error=error)
        return error

    async def refuse(self, dispatch: Dispatch, error: OpError) -> None:
        """Record a dispatch that ended before it became an effect. It has an intent only if its sync failed."""
        status: Status = "failed"
        if isinstance(error, OpDenied):
            status = "denied"
        elif isinstance(error, OpCancelled):
            status = "cancelled"
        if not dispatch.intended:
            dispatch.key = None
        self._redactor.error(error)
        await self._outcome(dispatch, status, error=error, begun=False)

    async def refuse_worker(self, op: str, origin: Origin, code: str, message: str) -> None:
        """Record a request of a worker that was rejected before it became a dispatch."""
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
        self,
        dispatch: Dispatch,
        status: Status,
        *,
        error: OpError | None = None,
        size: int = 0,
        result: Any = None,
        begun: bool = True,
    ) -> None:
        state = rights = None
        if dispatch.key is not None:
            certain = status == "done" or dispatch.found.spec.idempotent
            certain = certain or (error is not None and error.nothing_happened)
            state = (status if certain else "unknown") if begun else "failed"
            rights = tuple(sorted(map(str, dispatch.used)))
        outcome = Outcome(
            effect=dispatch.effect,
            key=dispatch.key,
            op=self._redactor.text(dispatch.op)[:200],
            status=status,
            error=error.as_dict() if error else None,
            ms=round((perf_counter() - dispatch.started) * 1000, 3),
            bytes=size,
            result=result,
            state=state,
            rights=rights,
            note=dispatch.note,
        )
        if not dispatch.intended:
            # No intent has these fields.
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
        due = dispatch.intended and dispatch.found.spec.durable
        written = self._ledger.outcome_now(outcome, due=due)
        if written and dispatch.key is None:
            await self._report(dispatch, outcome)
            return
        with CancelScope(shield=True):
            if not written:
                await self._ledger.outcome(outcome, due=due)
            if dispatch.key is not None:
                await self._claims.settle(outcome, dispatch.origin)
            await self._report(dispatch, outcome)

    async def _report(self, dispatch: Dispatch, outcome: Outcome) -> None:
        error, ms = outcome.error, outcome.ms or 0.0
        if dispatch.call.on_effect is not None:
            allowed_by = " ".join(dispatch.covering) or "no capability required"
            decision = error["message"] if error and outcome.status == "denied" else allowed_by
            report = EffectReport(outcome.effect, outcome.op, outcome.status, decision, ms, dispatch.recorded, error)
            try:
                dispatch.call.on_effect(report)
            except Exception as raised:  # noqa: BLE001  a listener must not affect the dispatch
                _log.warning("`on_effect` callback failed: %s", self._redactor.text(safe_text(raised)))
        hooks = dispatch.call.hooks or self._hooks
        if hooks.has("effect"):
            with CancelScope(shield=True):
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
