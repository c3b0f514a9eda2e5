"""Idempotency keys. A claim in the store records which effect owns a key, and its outcome.

Each principal has its own keys. A result is returned only to the same skill or plugin, and only if the grant covers
the capabilities that the effect used. All principals share the keys of undo steps, because an effect is undone once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from attrs import frozen

from ..errors import StoreConflict
from ..ledger import Ledger, find
from ..ledger._bytes import bytes_as_json, revive
from ..ops import EffectInFlight, EffectUnknown, Grant, Origin
from ..store import Store
from ._errors import KeyReused

UNDO = "undo:"
"""The prefix of the keys of undo steps. No other effect may use it."""

_USER = Origin()


@frozen
class Replay:
    """The stored result of an effect that was already done with this key, and the capabilities that it used."""

    effect: str
    result: Any
    rights: Grant


class Claims:
    """The claims on idempotency keys. Each key has at most one effect, also across hosts that share a store."""

    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger

    async def take(
        self,
        key: str,
        *,
        effect: str,
        op: str,
        digest: str,
        origin: Origin = _USER,
        code: str = "",
        grant: Grant = Grant(),  # noqa: B008  it is immutable
    ) -> Replay | None:
        """Claim ``key`` for ``effect``.

        Args:
            key: the key.
            effect: the id of the effect.
            op: the op.
            digest: the digest of its parameters.
            origin: the caller.
            code: the skill's code, as in ``Call``.
            grant: the grant of the effect.

        Returns:
            ``None`` if the effect may run now, or the result of the earlier effect. The caller must check its rights.

        Raises:
            EffectInFlight: if a running effect holds the key.
            EffectUnknown: if it is unknown whether the earlier effect happened.
            KeyReused: if the key was used with another op, other parameters, or by other code.
        """
        await self._ledger.register()
        claim: dict[str, Any] = {"effect": effect, "op": op, "digest": digest, "state": "running"}
        # Which of its rights the effect uses is known only when it ends.
        claim |= {"holder": [origin.principal, origin.plugin, code], "rights": list(grant.texts())}
        if (path := _path(key, origin)) != _path(key):
            # Earlier versions did not record the holder, so an earlier claim of the user may be the caller's.
            found = await self._store.get(_path(key))
            if found and "holder" not in found.value and found.value["state"] != "failed":
                raise KeyReused(op, key)
        try:
            await self._store.put(path, claim, version=0)
        except StoreConflict:
            return await self._take_over(key, claim, origin)
        return None

    async def recall(self, key: str) -> tuple[str, Any] | None:
        """Return the outcome of the effect of the user's ``key`` without claiming it.

        Returns:
            ``done`` and the result, ``unknown``, or ``None`` if no effect happened with this key.
        """
        found = await self._store.get(_path(key))
        if found is None:
            return None
        state, result = found.value["state"], found.value.get("result")
        if state == "running":
            try:
                state, result = await self._abandoned(key, found.value["op"], found.value["effect"], _USER)
            except EffectInFlight:
                state = "unknown"
        if state == "done" and "holder" in found.value:
            return "done", revive(result)
        return ("unknown", None) if state in {"done", "unknown", "repeatable"} else None

    async def _take_over(self, key: str, claim: dict[str, Any], origin: Origin) -> Replay | None:
        found = await self._store.get(_path(key, origin))
        if found is None:
            raise EffectInFlight(claim["op"], key)
        state, effect, result = found.value["state"], found.value["effect"], found.value.get("result")
        if state == "running":
            state, result = await self._abandoned(key, claim["op"], effect, origin)
        # The key of an effect that did not happen is free for any effect; a repeatable one only for the same effect.
        same = all(found.value.get(name, claim[name]) == claim[name] for name in ("op", "digest", "holder"))
        if state != "failed" and not same:
            raise KeyReused(claim["op"], key)
        if state == "done":
            if "holder" not in found.value:  # of an earlier version: it is unknown who may get the result
                raise KeyReused(claim["op"], key)
            return Replay(effect, revive(result), Grant.parse(found.value["rights"]))
        if state == "unknown":
            raise EffectUnknown(claim["op"], key, effect)
        try:
            await self._store.put(_path(key, origin), claim, version=found.version)
        except StoreConflict:
            raise EffectInFlight(claim["op"], key) from None
        return None

    async def _abandoned(self, key: str, op: str, effect: str, origin: Origin) -> tuple[str, Any]:
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
            await self.settle(key, "done", record.result, origin=origin)
            return "done", record.result
        return "unknown", None

    async def settle(
        self,
        key: str,
        state: str,
        result: Any = None,
        *,
        origin: Origin = _USER,
        rights: Iterable[str] | None = None,
    ) -> None:
        """Store the outcome of the effect: ``done`` (with its result), ``failed``, ``unknown``, or ``repeatable``.

        Args:
            key: the key.
            state: the outcome.
            result: the redacted result.
            origin: the caller.
            rights: the capabilities that the effect used; by default all of its grant.
        """
        found = await self._store.get(_path(key, origin))
        claim: dict[str, Any] = dict(found.value) if found else {"effect": "", "op": "", "digest": ""}
        if rights is not None:
            claim["rights"] = sorted(rights)
        storable = json.loads(json.dumps(result, default=bytes_as_json))
        await self._store.put(_path(key, origin), {**claim, "state": state, "result": storable})


def _path(key: str, origin: Origin = _USER) -> str:
    """Return the key of a claim in the store. A key of one principal never has the path of a key of another."""
    if key.startswith(UNDO) or origin.principal == _USER.principal:
        return f"claims/{key}"
    return f"claims:{quote(origin.principal, safe='')}/{key}"
