"""The effects that undid another effect, found by their keys: ``undo:EFFECT:NUMBER``."""

from __future__ import annotations

from pathlib import Path

from sideband.ledger import EffectRecord, query

_MAX_STEPS = 200
_MAX_ATTEMPTS = 20
_MAX_CHAIN_LENGTH = 100


def undone_effect(record: EffectRecord) -> str | None:
    """Return the effect that this one undoes, or ``None``."""
    word, _, rest = (record.key or "").partition(":")
    effect, _, number = rest.rpartition(":")
    return effect if word == "undo" and effect and number.isdecimal() else None


async def undoing_effects(ledger: Path, effect: str) -> tuple[EffectRecord, ...]:
    """Return all effects that undid this one or tried to, by step and then by time."""
    found: list[EffectRecord] = []
    for number in range(_MAX_STEPS):
        attempts = await query(ledger, key=f"undo:{effect}:{number}", limit=_MAX_ATTEMPTS)
        if not attempts:
            break
        found += reversed(attempts)
    return tuple(found)


async def undo_chain(ledger: Path, effect: str) -> tuple[str, ...]:
    """Return the effect that undid this one, the one that undid that, and so on; of several the last one."""
    chain: list[str] = []
    while len(chain) < _MAX_CHAIN_LENGTH:
        done = [one for one in await undoing_effects(ledger, effect) if one.status == "done"]
        if not done:
            break
        effect = done[-1].effect
        chain.append(effect)
    return tuple(chain)
