"""Idempotency keys: who may run the effect of a key, and what became of it. Claims live in the store."""

from __future__ import annotations

import json
from typing import Any

from attrs import frozen

from ..errors import StoreConflict
from ..ledger import Ledger, find
from ..ledger._bytes import bytes_as_json, revive
from ..ops import EffectInFlight, EffectUnknown
from ..store import Store
from ._errors import KeyReused


@frozen
class Replay:
    """The effect of this key is done already; this is what it answered."""

    effect: str
    result: Any


class Claims:
    """At most one effect for each key, also among several hosts that share a store."""

    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger

    async def take(self, key: str, *, effect: str, op: str, digest: str) -> Replay | None:
        """Claim ``key`` for ``effect``.

        Returns:
            ``None`` if the effect may run now, or what it answered before.

        Raises:
            EffectInFlight: another one holds the key.
            EffectUnknown: whether it happened is not known.
            KeyReused: the key was used for something else.
        """
        await self._ledger.register()
        claim = {"effect": effect, "op": op, "digest": digest, "state": "running"}
        try:
            await self._store.put(_path(key), claim, version=0)
        except StoreConflict:
            return await self._take_over(key, claim)
        return None

    async def recall(self, key: str) -> tuple[str, Any] | None:
        """What became of the effect of ``key``, without claiming it: ``done`` with its result, or ``unknown``.

        Returns:
            ``None`` if nothing happened under this key.
        """
        found = await self._store.get(_path(key))
        if found is None:
            return None
        state, result = found.value["state"], found.value.get("result")
        if state == "running":
            try:
                state, result = await self._abandoned(key, found.value["op"], found.value["effect"])
            except EffectInFlight:
                state = "unknown"
        if state == "done":
            return "done", revive(result)
        return ("unknown", None) if state in {"unknown", "repeatable"} else None

    async def _take_over(self, key: str, claim: dict[str, Any]) -> Replay | None:
        found = await self._store.get(_path(key))
        if found is None:
            raise EffectInFlight(claim["op"], key)
        state, effect, result = found.value["state"], found.value["effect"], found.value.get("result")
        if state == "running":
            state, result = await self._abandoned(key, claim["op"], effect)
        # A key whose effect never happened is free for whatever is tried next; one that may be repeated, for the same.
        if state != "failed" and (found.value["op"], found.value["digest"]) != (claim["op"], claim["digest"]):
            raise KeyReused(claim["op"], key)
        if state == "done":
            return Replay(effect, revive(result))
        if state == "unknown":
            raise EffectUnknown(claim["op"], key, effect)
        try:
            await self._store.put(_path(key), claim, version=found.version)
        except StoreConflict:
            raise EffectInFlight(claim["op"], key) from None
        return None

    async def _abandoned(self, key: str, op: str, effect: str) -> tuple[str, Any]:
        """What the ledger says of an effect whose host is gone without having settled its claim.

        Raises:
            EffectInFlight: the host is not gone.
        """
        if self._ledger.is_alive(effect):
            raise EffectInFlight(op, key)
        record = await find(self._ledger.folder, effect)
        if record is None:
            return "failed", None  # it was gone before the effect was begun
        if record.status == "done":
            await self.settle(key, "done", record.result)
            return "done", record.result
        return "unknown", None

    async def settle(self, key: str, state: str, result: Any = None) -> None:
        """Say what became of the effect: ``done`` (with its result), ``failed``, ``unknown``, or ``repeatable``."""
        found = await self._store.get(_path(key))
        claim = dict(found.value) if found else {"effect": "", "op": "", "digest": ""}
        storable = json.loads(json.dumps(result, default=bytes_as_json))
        await self._store.put(_path(key), {**claim, "state": state, "result": storable})


def _path(key: str) -> str:
    return f"claims/{key}"
