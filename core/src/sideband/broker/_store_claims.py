"""The claims of hosts that share a store but not a ledger: a document in the store for each idempotency key.

Each host holds a lock in the store, by which the others know whether a claim without an outcome is that of a running
effect. The intent is written to the ledger before the claim, so that each claim is settled: by its host,
or by the host that recovers its effects from the ledger. A claim that cannot be settled leaves its key unknown.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import quote

import anyio
from anyio import CancelScope
from attrs import define, field

from ..errors import StoreConflict, StoreError
from ..ledger import EffectRecord, Intent, Ledger, Outcome
from ..ledger._bytes import bytes_as_json
from ..ledger._fields import line_fields, read_fields
from ..ledger._keys import UNDO
from ..ops import EffectInFlight, Origin
from ..store import Document, SharedStore, Store
from ._claims import Claims, LedgerClaims, Replay, answer_for, check_unicode, outcome_of

_log = logging.getLogger("sideband.broker")
# How long to wait before the outcome is stored again, in seconds. The store waits for its server itself.
_PAUSES = (0.0, 0.05, 0.5)
# A claim has these fields of a line, as in the ledger.
_CLAIM = ("effect", "op", "params_digest", "code", "origin", "rights")
_SETTLED = ("status", "state", "result", "rights")


async def claims_of(store: Store, ledger: Ledger) -> Claims:
    """Return the claims in a store that is shared, or those in the ledger.

    Raises:
        StoreError: if the locks of the store cannot be used.
    """
    if not isinstance(store, SharedStore):
        return LedgerClaims(ledger, store)
    # Closing the store releases it.
    if not await store.try_lock(_lock(ledger.host)):
        raise StoreError(f"another host that uses the store has the id {ledger.host}", hint="start again")
    return _StoreClaims(ledger, store)


@define
class _StoreClaims:
    """The claims in a store that is shared."""

    in_ledger: ClassVar[bool] = False
    _ledger: Ledger
    _store: SharedStore
    _taken: dict[str, Document] = field(factory=dict, init=False)
    _unsettled: list[tuple[Outcome, Origin, bool]] = field(factory=list, init=False)

    async def take(self, intent: Intent, *, durable: bool) -> Replay | None:
        """Claim the key, as in ``Claims``."""
        check_unicode(intent)
        await self.settle_all()
        path = _path(intent.key or "", intent.origin)
        stored = await self._store.get(path)
        if stored is not None:
            found = _record(stored.value)
            is_running = found.status is None and await self._is_alive(found.effect)
            answer = answer_for(intent, found, is_running=is_running)
            if answer is not None:
                return answer
        await self._ledger.intent(intent, durable=durable)
        claim = line_fields("intent", intent, _CLAIM)
        try:
            version = await self._store.put(
                path, claim, version=0 if stored is None else stored.version, durable=durable
            )
        except StoreConflict:
            raise EffectInFlight(intent.op, intent.key or "") from None
        self._taken[intent.effect] = Document(claim, version)
        return None

    async def settle(self, outcome: Outcome, origin: Origin, *, is_late: bool = False) -> None:
        """Store the outcome, unless another effect has the key. If the store fails, try again with later effects."""
        for pause in _PAUSES:
            try:
                await self._settle(outcome, origin, is_late)
            except StoreError as error:
                # The effect has ended and its outcome is in the ledger.
                problem = error
                await anyio.sleep(pause)
            else:
                return
        self._unsettled.append((outcome, origin, is_late))
        _log.warning("the key of effect %s remains claimed until it can be stored: %s", outcome.effect, problem)

    async def settle_all(self) -> bool:
        """Store the outcomes that could not be stored, and return whether all are stored."""
        while self._unsettled:
            waiting = self._unsettled.pop()  # so that no other task stores it at the same time
            try:
                await self._settle(*waiting)
            except StoreError:
                self._unsettled.append(waiting)
                return False
        return True

    async def _settle(self, outcome: Outcome, origin: Origin, is_late: bool) -> None:
        path = _path(outcome.key or "", origin)
        # What this host has claimed need not be read, but another one may have changed it since.
        stored = self._taken.pop(outcome.effect, None) or await self._store.get(path)
        if stored is None or stored.value["effect"] != outcome.effect:
            return
        if is_late and stored.value.get("status") is not None:
            return
        settled = line_fields("outcome", outcome, _SETTLED)
        claim = {**stored.value, **json.loads(json.dumps(settled, default=bytes_as_json))}
        # A power cut that loses this leaves the key unknown.
        await self._store.put(path, claim, version=stored.version, durable=False)

    async def recall(self, key: str) -> tuple[str, Any] | None:
        """Return the outcome, as in ``Claims``."""
        stored = await self._store.get(_path(key, Origin()))
        return None if stored is None else outcome_of(_record(stored.value))

    async def _is_alive(self, effect: str) -> bool:
        lock = _lock(effect.rpartition("-")[0])
        if not await self._store.try_lock(lock):
            return True
        with CancelScope(shield=True):
            await self._store.unlock(lock)
        return False


def _record(claim: Mapping[str, Any]) -> EffectRecord:
    return EffectRecord(**read_fields(EffectRecord, claim))


def _lock(host: str) -> str:
    return f"host/{host}"


def _path(key: str, origin: Origin) -> str:
    """Return the key of a claim in the store. All principals share those of undo steps."""
    return f"claim/{'' if key.startswith(UNDO) else quote(origin.principal, safe='')}/{key}"
