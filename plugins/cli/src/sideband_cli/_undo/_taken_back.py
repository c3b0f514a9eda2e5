"""Which effects took another one back, as their keys say: ``undo:EFFECT:NUMBER``."""

from __future__ import annotations

from pathlib import Path

from sideband.ledger import EffectRecord, query

_MOST_STEPS = 200
_MOST_TRIES = 20
_LONGEST_CHAIN = 100


def takes_back(record: EffectRecord) -> str | None:
    """The effect that this one takes back; ``None`` if it takes back none."""
    word, _, rest = (record.key or "").partition(":")
    effect, _, number = rest.rpartition(":")
    return effect if word == "undo" and effect and number.isdecimal() else None


async def takers_back(ledger: Path, effect: str) -> tuple[EffectRecord, ...]:
    """All effects that took this one back or tried to, by step, the oldest try first."""
    found: list[EffectRecord] = []
    for number in range(_MOST_STEPS):
        tries = await query(ledger, key=f"undo:{effect}:{number}", limit=_MOST_TRIES)
        if not tries:
            break
        found += reversed(tries)
    return tuple(found)


async def chain_of(ledger: Path, effect: str) -> tuple[str, ...]:
    """The effects that took it back, that took that back, and so on: the last of each."""
    chain: list[str] = []
    while len(chain) < _LONGEST_CHAIN:
        done = [one for one in await takers_back(ledger, effect) if one.status == "done"]
        if not done:
            break
        effect = done[-1].effect
        chain.append(effect)
    return tuple(chain)
