"""Idempotency keys. A claim in the store records which effect owns a key, and its outcome."""

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
    """The stored result of an effect that was already done with this key."""

    effect: str
    result: Any


class Claims:
    """The claims on idempotency keys. Each key has at most one effect, also across hosts that share a store."""

    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger

    async def take(self, key: str, *, effect: str, op: str, digest: str) -> Replay | None:
        """Claim ``key`` for ``effect``.

        Returns:
            ``None`` if the effect may run now, or the result of the earlier effect.

        Raises:
            EffectInFlight: if a running effect holds the key.
            EffectUnknown: if it is unknown whether the earlier effect happened.
            KeyReused: if the key was used with another op or other parameters.
        """
        await self._ledger.register()
        claim = {"effect": effect, "op": op, "digest": digest, "state": "running"}
        try:
            await self._store.put(_path(key), claim, version=0)
        except StoreConflict:
            return await self._take_over(key, claim)
        return None

    async def recall(self, key: str) -> tuple[str, Any] | None:
        """Return the outcome of the effect of ``key`` without claiming it.

        Returns:
            ``done`` and the result, ``unknown``, or ``None`` if no effect happened with this key.
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
        # The key of an effect that did not happen is free for any effect; a repeatable one only for the same effect.
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
        """Return the recorded outcome of an effect whose host died without settling its claim.

        Raises:
            EffectInFlight: if the host is still running.
        """
        if self._ledger.is_alive(effect):
            raise EffectInFlight(op, key)
        record = await find(self._ledger.folder, effect)
        if record is None:
            return "failed", None  # the host died before the effect began
        if record.status == "done":
            await self.settle(key, "done", record.result)
            return "done", record.result
        return "unknown", None

    async def settle(self, key: str, state: str, result: Any = None) -> None:
        """Store the outcome of the effect: ``done`` (with its result), ``failed``, ``unknown``, or ``repeatable``."""
        found = await self._store.get(_path(key))
        claim = dict(found.value) if found else {"effect": "", "op": "", "digest": ""}
        storable = json.loads(json.dumps(result, default=bytes_as_json))
        await self._store.put(_path(key), {**claim, "state": state, "result": storable})


def _path(key: str) -> str:
    return f"claims/{key}"
