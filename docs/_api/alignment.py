"""The same names for the same things in two descriptions, so that moving something within the API changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .python import Facts

__all__ = ["aligned"]


def aligned(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Facts, Facts]:
    """Return two descriptions in which each part has the same path, if it can still be used under that path.

    - A value with several names is described at the name at which the old description has it.
    - A name of its own that was another name of a value has the description of that value.
    - A member that a base class defines now is described at the class that had it, and so is a constructor.
    """
    before, after = dict(old), _at_old_homes(old, new)
    for path, fact in old.items():
        if fact["kind"] == "same" and after.get(path, fact)["kind"] != "same":
            before |= _copied(old, f"python:{fact['as']}", path)
    _inherit(before, after)
    _inherit(after, before)
    return before, after


def _at_old_homes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Facts:
    moved: Facts = dict(new)
    names: dict[str, list[str]] = {}
    for path in new:
        if path.startswith("python:"):
            names.setdefault(_home(new, path), []).append(path)
    renamed = {}
    for home, group in names.items():
        before = [_home(old, path) for path in sorted(group) if path in old]
        if not before or set(before) == {home}:
            continue
        first = home if home in before else before[0]
        renamed[_name(home)] = _name(first)
        homes = [path for path in before if path in group]
        for path in homes:
            moved |= _copied(new, home, path)
        for path in group if homes else ():
            if path not in homes:
                as_before = _home(old, path) if path in old else first
                moved[path] = _same(as_before if as_before in homes else homes[0])
        if homes and home not in homes:
            moved = {path: fact for path, fact in moved.items() if not _is_below(path, home)}
    return {path: _renamed(fact, renamed, but=_name(path)) for path, fact in moved.items()} if renamed else moved


def _home(facts: Mapping[str, Any], path: str) -> str:
    fact = facts[path]
    return f"python:{fact['as']}" if fact["kind"] == "same" else path


def _same(path: str) -> dict[str, str]:
    return {"kind": "same", "as": _name(path)}


def _name(path: str) -> str:
    return path.partition(":")[2]


def _is_below(path: str, home: str) -> bool:
    return path.startswith((f"{home}.", f"{home}("))


def _copied(facts: Mapping[str, Any], source: str, target: str) -> Facts:
    """Return the description of one value under another path."""
    parts = {path: fact for path, fact in facts.items() if path == source or _is_below(path, source)}
    names = {_name(source): _name(target)}
    return {target + path.removeprefix(source): _renamed(fact, names) for path, fact in parts.items()}


def _renamed(fact: Mapping[str, Any], names: Mapping[str, str], but: str = "") -> dict[str, Any]:
    """Return a description with other names of bases and of the class whose constructor is used.

    Args:
        fact: the description.
        names: the new name of each class that has one.
        but: the name of the class whose own constructor keeps it.
    """
    changed = dict(fact)
    if fact.get("constructor", but) != but:
        changed["constructor"] = names.get(fact["constructor"], fact["constructor"])
    if "bases" in fact:
        changed["bases"] = sorted(names.get(base, base) for base in fact["bases"])
    return changed


def _inherit(facts: Facts, other: Mapping[str, Any]) -> None:
    """Add to each class what the other description has at it, and this one at a base."""
    members: dict[str, list[str]] = {}
    for name in other:
        if "(" not in name:
            members.setdefault(name.rpartition(".")[0], []).append(name)
    for path, fact in list(facts.items()):
        theirs = other.get(path)
        if "bases" not in fact or theirs is None or "bases" not in theirs:
            continue
        if fact.get("constructor") != theirs.get("constructor") and fact.get("constructor") != _name(path):
            facts |= _constructor(facts, path, fact.get("constructor"))
        for member in [one for one in members.get(path, ()) if one not in facts]:
            for base in fact["bases"]:
                inherited = f"python:{base}{member.removeprefix(path)}"
                if inherited in facts:
                    facts |= _copied(facts, inherited, member)
                    break


def _constructor(facts: Mapping[str, Any], path: str, owner: str | None) -> Facts:
    source = f"python:{owner}"
    if owner is None or source not in facts:
        return {}
    parameters = {name: fact for name, fact in facts.items() if name.startswith(f"{source}(")}
    own = {**facts[path], **{name: value for name, value in facts[source].items() if name == "order"}}
    return {path: own, **{path + name.removeprefix(source): fact for name, fact in parameters.items()}}
