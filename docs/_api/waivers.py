"""Waivers: the breaks that are accepted, each with its reason, until the next release is recorded."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import frozen

from .compare import Change
from .rules import RULES, Verdict

__all__ = ["Waiver", "WaiversInvalid", "read_waivers", "refused", "unused"]

_KEYS = ("rule", "path", "reason", "since")


class WaiversInvalid(ValueError):
    """The file of waivers has an error. The message names the entry and the key."""


@frozen
class Waiver:
    """One accepted break.

    Attributes:
        rule: the name of the rule.
        path: the path of the part that changes.
        reason: the reason, as users of the part read it.
        since: the version that breaks it.
    """

    rule: str
    path: str
    reason: str
    since: str

    def covers(self, change: Change) -> bool:
        """Return whether a change is the one that this waiver accepts."""
        return (self.rule, self.path) == (change.rule.name, change.path)


def read_waivers(path: Path) -> tuple[Waiver, ...]:
    """Return the waivers in a file.

    Raises:
        WaiversInvalid: if an entry lacks a key, has an unknown or empty one, or names an unknown rule.
    """
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    unknown = sorted(content.keys() - {"waiver"})
    if unknown:
        raise WaiversInvalid(f"{path.name}: unknown key `{unknown[0]}`; write each waiver as `[[waiver]]`")
    return tuple(
        _waiver(entry, f"{path.name}: waiver {number}") for number, entry in enumerate(content.get("waiver", ()), 1)
    )


def _waiver(entry: dict[str, object], where: str) -> Waiver:
    unknown = sorted(entry.keys() - set(_KEYS))
    if unknown:
        raise WaiversInvalid(f"{where}: unknown key `{unknown[0]}`; the keys are {', '.join(_KEYS)}")
    texts = {}
    for key in _KEYS:
        value = entry.get(key)
        if not isinstance(value, str) or not value.strip():
            raise WaiversInvalid(f"{where}: `{key}` must be a text that is not empty")
        texts[key] = value.strip()
    rule = RULES.get(texts["rule"])
    if rule is None or rule.verdict is not Verdict.BREAK:
        raise WaiversInvalid(f"{where}: `{texts['rule']}` is not a rule for breaks; copy it from `python docs/api.py`")
    return Waiver(**texts)


def refused(changes: Iterable[Change], waivers: Sequence[Waiver]) -> list[Change]:
    """Return the breaks that no waiver accepts."""
    return [one for one in changes if one.is_break and not any(waiver.covers(one) for waiver in waivers)]


def unused(changes: Sequence[Change], waivers: Iterable[Waiver]) -> list[Waiver]:
    """Return the waivers of changes that do not exist."""
    return [one for one in waivers if not any(one.covers(change) for change in changes)]
