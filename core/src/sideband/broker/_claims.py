"""Idempotency keys. The ledger records which effect owns a key, and its outcome, unless the store is shared.

Each principal has its own keys. A result is returned only to the same skill or plugin, and only if the grant covers
the capabilities that the effect used. All principals share the keys of undo steps, because an effect is undone once.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Protocol
from urllib.parse import quote

from attrs import Factory, define, frozen

from ..ledger import EffectRecord, Intent, Ledger, Outcome
from ..ledger._keys import UNDO
from ..ops import EffectInFlight, EffectUnknown, Grant, OpError, OpParamsInvalid, Origin
from ..store import Store
from ._errors import KeyReused
from ._redaction import Redaction

_USER = Origin()


@frozen
class Replay:
    """The stored result of an effect that was already done with this key, and the capabilities that it used.

    An earlier attempt of a call may also have got an error as the answer.

    Attributes:
        effect: the id of the effect that was done.
        result: its result.
        rights: the capabilities that it used.
        error: its error, instead of a result.
    """

    effect: str
    result: Any = None
    rights: Grant = Factory(Grant)
    error: OpError | None = None

    def answer(self, redactor: Redaction) -> Any:
        """Return the result, or raise the error. They were redacted with the secrets that were known then."""
        if self.error is not None:
            redactor.error(self.error)
            raise self.error
        return redactor.data(self.result, sensitive_keys=False)


class Claims(Protocol):
    """The claims on idempotency keys. Each key has at most one effect, also across hosts that share the claims.

    Attributes:
        in_ledger: whether the outcome in the ledger settles a claim, so that ``settle`` does nothing.
    """

    in_ledger: ClassVar[bool]

    async def take(self, intent: Intent, *, durable: bool) -> Replay | None:
        """Claim the key of ``intent`` and write the intent to the ledger.

        Args:
            intent: the intent, with a key, the code, the rights and the digest of the parameters.
            durable: whether to sync the intent to disk.

        Returns:
            ``None`` if the effect may run now, or the result of the earlier effect. The caller must check its rights.

        Raises:
            EffectInFlight: if a running effect holds the key.
            EffectUnknown: if it is unknown whether the earlier effect happened.
            KeyReused: if the key was used with another op, other parameters, or by other code.

        If it raises after the intent was written, ``settle`` follows. Otherwise the key must not remain claimed.
        """

    async def settle(self, outcome: Outcome, origin: Origin, *, is_late: bool = False) -> None:
        """Take note of the outcome of an effect with a key. It is already in the ledger.

        Args:
            outcome: the outcome.
            origin: who requested the effect.
            is_late: whether it may be settled already, and then stays as it is.
        """

    async def settle_all(self) -> bool:
        """Store the outcomes that could not be stored, and return whether all are stored."""

    async def recall(self, key: str) -> tuple[str, Any] | None:
        """Return the outcome of the effect of the user's ``key`` without claiming it.

        Returns:
            ``done`` and the result, ``unknown``, or ``None`` if no effect happened with this key.
        """


@define
class LedgerClaims:
    """The claims of the hosts that share a ledger: the intent with a key is the claim.

    Args:
        ledger: the ledger.
        store: the store, which has the claims of earlier versions.
    """

    in_ledger: ClassVar[bool] = True
    _ledger: Ledger
    _store: Store
    _has_earlier: bool | None = None

    async def take(self, intent: Intent, *, durable: bool) -> Replay | None:
        """Claim the key, as in ``Claims``."""
        check_unicode(intent)
        earlier = await self._earlier_state(intent.key or "", intent.origin)
        return await self._ledger.intent(intent, durable=durable, unless=partial(self._answer, intent, earlier))

    async def settle(self, outcome: Outcome, origin: Origin, *, is_late: bool = False) -> None:
        """Do nothing: the outcome in the ledger settles the claim."""

    async def settle_all(self) -> bool:
        """Return true: outcomes are in the ledger."""
        return True

    async def recall(self, key: str) -> tuple[str, Any] | None:
        """Return the outcome, as in ``Claims``."""
        found = await self._ledger.earlier(key, _USER.principal)
        if found is None or _is_of_earlier_version(found):
            state = await self._earlier_state(key, _USER) or (None if found is None else "unknown")
            return None if state in {None, "failed"} else ("unknown", None)
        return outcome_of(found)

    def _answer(self, intent: Intent, earlier: str | None, found: EffectRecord | None) -> Replay | None:
        """Return the answer for an effect whose key has this record, or ``None`` if it may run.

        Args:
            intent: the intent of the effect.
            earlier: the state of a claim of an earlier version.
            found: the record of the last effect with the key.
        """
        if found is None or _is_of_earlier_version(found):
            if earlier == "failed" or (earlier is None and found is None):
                return None
            # It is unknown who may get the result.
            raise KeyReused(intent.op, intent.key or "")
        return answer_for(intent, found, is_running=found.status is None and self._ledger.is_alive(found.effect))

    async def _earlier_state(self, key: str, origin: Origin) -> str | None:
        """Return the state of the claim that an earlier version has left in the store, or ``None``."""
        if self._has_earlier is None:
            self._has_earlier = bool(await self._store.keys("claims"))
        if not self._has_earlier:
            return None
        found = await self._store.get(_path(key, origin))
        if found is None and (claim := await self._store.get(_path(key))) and "holder" not in claim.value:
            found = claim  # Before claims had holders, all principals shared the keys.
        return None if found is None else str(found.value["state"])


def check_unicode(intent: Intent) -> None:
    """Raise an ``OpParamsInvalid`` if the key or the principal cannot be stored."""
    try:
        f"{intent.key}{intent.origin.principal}".encode()
    except UnicodeEncodeError:
        raise OpParamsInvalid(intent.op, "the idempotency key or the principal is not valid Unicode") from None


def answer_for(intent: Intent, found: EffectRecord, *, is_running: bool) -> Replay | None:
    """Return the answer for an effect whose key has this record, or ``None`` if it may run.

    Args:
        intent: the intent of the effect.
        found: the record of the last effect with the key.
        is_running: whether that effect has no outcome and its host is alive.

    Raises:
        EffectInFlight, EffectUnknown, KeyReused: as ``Claims.take``.
    """
    key = intent.key or ""
    if is_running:
        raise EffectInFlight(intent.op, key)
    state = found.state or "unknown"
    # The key of an effect that did not happen is free for any effect; a repeatable one only for the same effect.
    if state == "failed":
        return None
    if _identity(found) != _identity(intent) or (state == "done" and found.erased):
        raise KeyReused(intent.op, key)
    if state == "done":
        return Replay(found.effect, found.result, Grant.parse(found.rights))
    if state == "unknown":
        raise EffectUnknown(intent.op, key, found.effect)
    return None


def outcome_of(found: EffectRecord) -> tuple[str, Any] | None:
    """Return the outcome of an effect with a key, as ``Claims.recall``."""
    if found.state == "done" and not found.erased:
        return "done", found.result
    happened = found.status is None or found.state in {"done", "unknown", "repeatable"}
    return ("unknown", None) if happened else None


def _identity(intent: Intent) -> tuple[str | None, ...]:
    """Return what makes a use of a key the same effect."""
    return intent.op, intent.params_digest, intent.origin.principal, intent.origin.plugin, intent.code


def _is_of_earlier_version(found: EffectRecord) -> bool:
    """Return whether a version recorded the effect that did not write claims to the ledger."""
    return found.state is None and found.entries[0].fields.get("v") == 1


def _path(key: str, origin: Origin = _USER) -> str:
    """Return the key of a claim of an earlier version in the store."""
    if key.startswith(UNDO) or origin.principal == _USER.principal:
        return f"claims/{key}"
    return f"claims:{quote(origin.principal, safe='')}/{key}"
