"""Choose the tools of one request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen
from sideband.hooks import ToolCandidate

from ._expand_tool import EXPAND


@frozen
class Preferences:
    """What is sent, as far as it fits.

    Attributes:
        kept: the names of the tools that are sent in any case.
        ranked: the names of the tools that fit the conversation, the best first.
        previous: the names of the tools that were sent before; they fill what is left, so that provider caches hold.
        limit: the number of tools to send.
        least: the number of tools to send besides those that are kept.
        tokens: the number of tokens that all definitions may take.
    """

    kept: frozenset[str]
    ranked: Sequence[str]
    previous: Sequence[str]
    limit: int
    least: int
    tokens: int


def selected(candidates: Sequence[ToolCandidate], preferences: Preferences) -> list[str]:
    """Return the names of the tools to send, in the order of the candidates. A category is sent as a whole."""
    units = _units(candidates)
    chosen: dict[str, ToolCandidate] = {}
    for name in preferences.kept & units.keys():
        chosen.update((one.name, one) for one in units[name])
    room = max(preferences.limit - len(chosen), preferences.least)
    tokens = preferences.tokens - sum(one.tokens for one in chosen.values())
    for name in _order(preferences, candidates):
        if room <= 0:
            break
        new = [one for one in units.get(name, ()) if one.name not in chosen]
        size = sum(one.tokens for one in new)
        if new and size <= tokens:
            chosen.update((one.name, one) for one in new)
            room -= len(new)
            tokens -= size
    return [one.name for one in candidates if one.name in chosen]


def _order(preferences: Preferences, candidates: Iterable[ToolCandidate]) -> Iterable[str]:
    return dict.fromkeys([*preferences.ranked, *preferences.previous, *(one.name for one in candidates)])


def _units(candidates: Iterable[ToolCandidate]) -> dict[str, list[ToolCandidate]]:
    """Return the tools that are sent together with each tool, by its name, without those that must not be called."""
    categories: dict[str, list[ToolCandidate]] = {}
    units: dict[str, list[ToolCandidate]] = {}
    for one in candidates:
        if one.allowed and one.name != EXPAND:
            units[one.name] = categories.setdefault(one.category, []) if one.category else []
            units[one.name].append(one)
    return units
