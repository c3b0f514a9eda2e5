"""Record the intent and the outcome of each dispatch, and report them to listeners."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Any

from anyio import CancelScope, get_cancelled_exc_class
from attrs import evolve, field, frozen

from ..approvals import ApprovalNeeded
from ..errors import safe_text
from ..hooks import Effect, HookRegistry
from ..ledger import EffectRecord, Intent, Ledger, LedgerError, Outcome, Status
from ..ledger._keys import UNDO
from ..ops import (
    ContextRevoked,
    EffectInFlight,
    EffectUnknown,
    Grant,
    Level,
    OpCancelled,
    OpDenied,
    OpError,
    OpParamsInvalid,
    OpTimeout,
    Origin,
)
from ..ops._from_host import passing
from ._attempt import ALWAYS, BLOB, CONTINUES, Attempt, recorded_error
from ._attempts import Attempts
from ._call import EffectReport
from ._claims import Claims, Replay
from ._clock import running_clock
from ._dispatch import Dispatch
from ._errors import KeyReused
from ._gate import check_used
from ._redaction import Redaction
from ._values import digest_of, reported, secret_fields

_log = logging.getLogger("sideband.broker")
_LARGE = 32_768
_MOST_LATE, _MOST_CONTEXTS = 100, 1_000


@frozen
class EffectRecorder:
    """The recorder of dispatches, which writes to the ledger and settles idempotency keys.

    Args:
        ledger: the ledger.
        claims: the claims on idempotency keys.
        redactor: the redaction of everything that is written.
        hooks: the hooks that observe effects, unless the call has its own.
        attempts: keeps large answers until the outcome of their call is recorded.
    """

    _ledger: Ledger
    _claims: Claims
    _redactor: Redaction
    _hooks: HookRegistry
    _attempts: Attempts
    _clock: Callable[[], float] = field(factory=running_clock, init=False)
    _late: Counter[tuple[Origin, str | None]] = field(factory=Counter, init=False)

    async def intend(self, dispatch: Dispatch) -> Replay | None:
        """Write the intent, synced to disk if the op is durable. This claims the key.

        Returns:
            The result of the earlier effect with this key, or ``None`` if the effect may run now.

        Raises:
            LedgerError: if the intent could not be written. The effect must not run.
            OpError: if the key is claimed by another effect, or the deadline of the call has passed.
            ContextRevoked: if the lease of the dispatch has ended since it was checked, such as during an approval.
            OpDenied: if the grant does not cover what the earlier effect used.
        """
        try:
            return await self._intend(dispatch)
        except BaseException as raised:
            if (error := await self.refusal(dispatch, raised)) is not raised:
                raise error from None
            raise

    async def _intend(self, dispatch: Dispatch) -> Replay | None:
        spec = dispatch.found.spec
        if dispatch.call.deadline <= self._clock():
            raise OpTimeout(dispatch.op, 0)
        dispatch.check_lease()
        if dispatch.key is not None and dispatch.claimed:
            dispatch.digest = dispatch.digest or digest_of(dispatch.valid, passing(spec.from_host))
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
            level=dispatch.level,
            decisions=tuple(dispatch.decisions),
            isolation=dispatch.call.isolation,
            granted_by=dispatch.givers(),
            within=dispatch.within or dispatch.call.within or None,
            code=dispatch.call.code,
            # Which of its rights the effect uses is known only when it ends.
            rights=() if dispatch.key is None or not dispatch.claimed else dispatch.grant.texts(),
            params_digest=dispatch.digest,
            note=dispatch.note,
        )
        try:
            if dispatch.key is None or not dispatch.claimed:
                await self._ledger.intent(intent, durable=spec.durable)
            else:
                replay = await self._claims.take(intent, durable=spec.durable)
                if replay is not None:
                    self._check(dispatch, replay)
                    return replay
        except BaseException as raised:
            attempt = dispatch.call.attempt
            if attempt is not None and attempt.stops and isinstance(raised, (EffectInFlight, EffectUnknown, KeyReused)):
                attempt.unknown = attempt.unknown or raised
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

    async def recall(self, dispatch: Dispatch) -> Replay | None:
        """Give an effect of a call with a key its own key, and return its answer if an earlier attempt got one.

        This happens before guards are asked, because they could replace the parameters.

        Raises:
            ApprovalNeeded: if the call waits for an approval.
            OpError: if the call may cause no further effects, or the key is claimed by another effect.
            OpDenied: if the grant does not cover what the earlier effect used.
        """
        attempt, spec = dispatch.call.attempt, dispatch.found.spec
        assert attempt is not None  # noqa: S101  checked by the caller
        if attempt.waits is not None:
            raise ApprovalNeeded(attempt.waits.request)
        if dispatch.key is not None:
            attempt.begin(dispatch.effect, dispatch.key)
            return None
        dispatch.digest = digest_of(dispatch.valid, passing(spec.from_host))
        domain = dispatch.call.domain if spec.idempotent else ""
        key = attempt.effect_key(dispatch.effect, dispatch.op, dispatch.digest, within=dispatch.within, domain=domain)
        if attempt.unknown is not None:
            raise EffectUnknown(dispatch.op, key, attempt.stopped_by)
        unrecorded = (
            spec.reveals or spec.fire_and_forget or dispatch.within is not None or secret_fields(dispatch.valid)
        )
        if spec.idempotent and unrecorded:
            return None
        dispatch.key, dispatch.claimed = key, not spec.idempotent
        if (effect := attempt.unknown_effect(key)) is not None:
            # Not to be asked about: it does not happen, whatever guards and people decide.
            error = EffectUnknown(dispatch.op, key, effect)
            if attempt.stops:
                attempt.unknown = error
            raise error
        record = attempt.answer(key)
        replay = None if record is None else await self._recorded(dispatch, attempt, record)
        if replay is not None:
            attempt.answered.append(replay.effect)
            # The host itself runs the call again. If a caller repeats it, the guards must allow the answer now.
            dispatch.decided = attempt.stops
        return replay

    async def _recorded(self, dispatch: Dispatch, attempt: Attempt, record: EffectRecord) -> Replay | None:
        """Return the recorded answer of an effect, or ``None`` if only its claim can tell, or a read is not kept."""
        known = (record.op, record.params_digest, record.code, record.origin.plugin)
        if record.erased or known != (dispatch.op, dispatch.digest, dispatch.call.code, dispatch.origin.plugin):
            return None  # another skill or plugin may have used the key first, to answer in place of the op
        error, result, rights = recorded_error(record), record.result, Grant.parse(record.rights)
        if error is None and (record.state != "done" or (dispatch.claimed and secret_fields(dispatch.valid))):
            return None
        if dispatch.claimed:
            check_used(dispatch.grant, dispatch.op, rights)
        elif BLOB in record.note:
            try:
                result = await self._attempts.kept(attempt, str(record.note[BLOB]))
            except LookupError:
                return None
        return Replay(record.effect, result, rights, error)

    async def done(self, dispatch: Dispatch, result: Any, size: int) -> None:
        """Record a success. The result is stored if the effect has a key."""
        answer = result
        dispatch.reported = reported(dispatch.found.spec, result)
        if dispatch.key is None or (not dispatch.claimed and size > _LARGE):
            if dispatch.key is not None and dispatch.call.attempt is not None:
                dispatch.note[BLOB] = await self._attempts.keep(dispatch.call.attempt, result)
            result = None
        await self._outcome(dispatch, "done", size=size, result=result)
        if dispatch.call.on_answer is not None:
            await dispatch.call.on_answer(dispatch.effect, dispatch.op, answer)

    async def settle(self, dispatch: Dispatch, status: Status, error: OpError) -> OpError:
        """Record the outcome of an effect that ended without a result, and return the redacted error."""
        self._redactor.error(error)
        await self._outcome(dispatch, status, error=error)
        if dispatch.call.on_answer is not None:
            await dispatch.call.on_answer(dispatch.effect, dispatch.op, error)
        return error

    async def answer(self, dispatch: Dispatch, replay: Replay) -> Any:
        """Return the recorded result of an earlier effect, or raise its error."""
        result = replay.answer(self._redactor)
        if dispatch.call.on_answer is not None:
            await dispatch.call.on_answer(replay.effect, dispatch.op, result)
        return result

    async def refusal(self, dispatch: Dispatch, raised: BaseException) -> BaseException:
        """Record that an effect does not happen because of an exception, and return the one to raise."""
        if isinstance(raised, OpError):
            await self.refuse(dispatch, raised)
        elif isinstance(raised, get_cancelled_exc_class()):
            await self.refuse(dispatch, OpCancelled(dispatch.op))
        elif isinstance(raised, Exception) and not isinstance(raised, LedgerError):
            typed = dispatch.error(raised)  # a plugin's validator or scope may raise anything
            await self.refuse(dispatch, typed)
            return typed
        return raised

    async def refuse(self, dispatch: Dispatch, error: OpError) -> None:
        """Record a dispatch that ended before it became an effect. It has an intent only if its sync failed."""
        status: Status = "failed"
        if isinstance(error, ContextRevoked):
            context = dispatch.origin, dispatch.within
            if len(self._late) > _MOST_CONTEXTS:
                self._late.clear()
            self._late[context] += 1
            if self._late[context] > _MOST_LATE:
                return  # code that goes on must not fill the disk
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
            kept = dispatch.note.get(CONTINUES)
            continues = kept == ALWAYS or (kept is not None and isinstance(error, ApprovalNeeded))
            doubtful = "repeatable" if continues else "unknown"
            state = (status if certain else doubtful) if begun else "failed"
            rights = tuple(sorted(map(str, dispatch.used)))
        outcome = Outcome(
            effect=dispatch.effect,
            key=dispatch.key,
            op=dispatch.op if dispatch.intended else self._redactor.text(dispatch.op)[:200],
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
                within=dispatch.within or dispatch.call.within or None,
            )
        due = dispatch.intended and dispatch.found.spec.durable
        written = self._ledger.outcome_now(outcome, due=due)
        settles = dispatch.key is not None and dispatch.claimed and not self._claims.in_ledger
        if written and not settles:
            await self._report(dispatch, outcome)
            return
        with CancelScope(shield=True):
            if not written:
                await self._ledger.outcome(outcome, due=due)
            if settles:
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
                        egress=dispatch.leaves_machine(dispatch.params),
                        call=dispatch.call.id,
                        within=dispatch.within or dispatch.call.within or None,
                        result=dispatch.reported,
                    )
                )
