"""The comparison of two descriptions of one part of the API, property by property."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sideband.ops import Level

from .annotations import fits
from .schemas import accepts

__all__ = ["DEFAULTS", "changed_properties"]

Fact = Mapping[str, Any]
Found = Iterator[tuple[str, str]]
Compare = Callable[[Fact, Fact], Found]

DEFAULTS: Mapping[str, Any] = {"async": False, "order": [], "passed": "position or name", "required": False}
"""What a description means that leaves out one of these properties."""

_EGRESS = ("no", "depends", "yes")
_INPUTS = frozenset({"parameter", "field", "option", "argument"})


def changed_properties(old: Fact, new: Fact, ancestors: Mapping[str, Sequence[str]], use: str = "") -> Found:
    """Yield the rule and the detail of each difference.

    Args:
        old: the old description.
        new: the new description.
        ancestors: the names of the ancestors of classes, by name.
        use: ``both`` for what is input and output, ``input`` or ``output``; by default, as its kind says.
    """
    if old["kind"] != new["kind"]:
        yield "kind-changed", _arrow(old["kind"], new["kind"])
        return
    if old.get("use") != new.get("use"):
        yield "read-only" if old.get("use") == "both" else "writable", ""
    use = use or old.get("use") or ("input" if old["kind"] in _INPUTS else "output")
    before, after = {**DEFAULTS, **old, "use": use}, {**DEFAULTS, **new, "use": use}
    for name in sorted((before.keys() | after.keys()) - {"constructor"}):  # its parameters are compared
        if before.get(name) != after.get(name):
            if name in ("type", "schema"):
                order = partial(fits, ancestors=ancestors) if name == "type" else lambda one, other: accepts(other, one)
                yield _retyped(before, after, name, use, order), _arrow(before.get(name), after.get(name))
            elif name in _CHECKS:
                yield from _CHECKS[name](before, after)
            else:
                yield "changed", f"{name}: {_arrow(before.get(name), after.get(name))}"


def _retyped(old: Fact, new: Fact, name: str, use: str, is_within: Callable[[Any, Any], bool]) -> str:
    if name not in old or name not in new:
        return "changed"
    is_wider, is_narrower = is_within(old[name], new[name]), is_within(new[name], old[name])
    if is_wider:
        return "type-widened-input" if use == "input" else "type-widened-output"
    if is_narrower:
        return "type-narrowed-output" if use == "output" else "type-narrowed-input"
    return "retyped"


def _alias(old: Fact, new: Fact) -> Found:
    is_wider = fits(old["alias"], new["alias"])
    yield "alias-widened" if is_wider else "alias-changed", _arrow(old["alias"], new["alias"])


def _required(old: Fact, new: Fact) -> Found:
    if new["required"]:
        yield "default-lost" if "default" in old else "required", ""
    elif old["use"] == "both":
        yield "no-longer-promised", ""
    else:
        yield "default-gained" if "default" in new else "optional", ""


def _default(old: Fact, new: Fact) -> Found:
    if old["required"] == new["required"]:
        yield "default-changed", _arrow(old.get("default"), new.get("default"))


def _passed(old: Fact, new: Fact) -> Found:
    ways = {"position or name": {"position", "name"}}
    before, after = ({*ways.get(one["passed"], {one["passed"]})} for one in (old, new))
    yield "passed-in-more-ways" if before <= after else "passed-in-fewer-ways", _arrow(old["passed"], new["passed"])


def _order(old: Fact, new: Fact) -> Found:
    kept = [name for name in old["order"] if name in new["order"]]
    if new["order"][: len(kept)] != kept:
        yield "argument-moved", _arrow(", ".join(old["order"]), ", ".join(new["order"]))


def _level(old: Fact, new: Fact) -> Found:
    is_raised = Level[new["level"]] > Level[old["level"]]
    yield "level-raised" if is_raised else "level-lowered", _arrow(old["level"], new["level"])


def _egress(old: Fact, new: Fact) -> Found:
    is_more = _EGRESS.index(new["egress"]) > _EGRESS.index(old["egress"])
    yield "egress-added" if is_more else "egress-dropped", _arrow(old["egress"], new["egress"])


def _requires(old: Fact, new: Fact) -> Found:
    yield ("requirement-raised" if new["requires"] else "requirement-dropped"), _arrow(old["requires"], new["requires"])


def _needs(old: Fact, new: Fact) -> Found:
    """Compare the values, one of which a capability must allow. A field that is left out needs none."""
    before, after = old["needs"], new["needs"]
    is_covered = all(name in before and set(before[name]) <= set(values) for name, values in after.items())
    yield "requirement-dropped" if is_covered else "requirement-raised", _arrow(before, after)


def _time_limit(old: Fact, new: Fact, name: str) -> Found:
    before, after = (one[name] if one.get(name) is not None else float("inf") for one in (old, new))
    yield "time-limit-raised" if after > before else "time-limit-lowered", _arrow(old.get(name), new.get(name))


def _flag(old: Fact, new: Fact, name: str, gained: str, lost: str) -> Found:
    is_set = bool(new.get(name))
    if is_set != bool(old.get(name)):
        yield (gained if is_set else lost), ""


def _members(old: Fact, new: Fact, name: str, added: str, removed: str) -> Found:
    before, after = set(old.get(name) or ()), set(new.get(name) or ())
    if before - after:
        yield removed, f"without {_listed(before - after)}"
    if after - before:
        yield added, f"with {_listed(after - before)}"


def _values(old: Fact, new: Fact) -> Found:
    """Compare valid values; without a list, all are valid."""
    if "values" not in new or "values" not in old:
        yield "values-narrowed" if "values" in new else "values-widened", ""
    else:
        yield from _members(old, new, "values", "values-widened", "values-narrowed")


def _always(rule: str, name: str) -> Compare:
    def check(old: Fact, new: Fact) -> Found:
        yield rule, _arrow(old.get(name), new.get(name))

    return check


_CHECKS: Mapping[str, Compare] = {
    "abilities": partial(_members, name="abilities", added="ability-added", removed="ability-lost"),
    "abstract": partial(_flag, name="abstract", gained="must-be-implemented", lost="need-not-be-implemented"),
    "alias": _alias,
    "answers": _always("hook-kind-changed", "answers"),
    "async": _always("async-changed", "async"),
    "bases": partial(_members, name="bases", added="base-added", removed="base-removed"),
    "classes": partial(_members, name="classes", added="code-raised-by-more", removed="class-of-code-changed"),
    "deadline": partial(_time_limit, name="deadline"),
    "default": _default,
    "egress": _egress,
    "errors": partial(_members, name="errors", added="error-offered", removed="error-withdrawn"),
    "exit_codes": _always("exit-code-changed", "exit_codes"),
    "failure": _always("failure-policy-changed", "failure"),
    "guards_only": partial(_flag, name="guards_only", gained="guards-only", lost="opened-to-all"),
    "idempotent": partial(_flag, name="idempotent", gained="idempotence-gained", lost="idempotence-lost"),
    "internal": partial(_flag, name="internal", gained="internal", lost="opened-to-skills"),
    "level": _level,
    "lower": partial(_members, name="lower", added="level-lowered", removed="level-raised"),
    "may_return": partial(_members, name="may_return", added="answer-added", removed="answer-lost"),
    "needs": _needs,
    "order": _order,
    "passed": _passed,
    "records": partial(_members, name="records", added="more-recorded", removed="less-recorded"),
    "required": _required,
    "requires": _requires,
    "retryable": _always("retryable-changed", "retryable"),
    "timeout": partial(_time_limit, name="timeout"),
    "value": _always("value-changed", "value"),
    "values": _values,
}


def _arrow(old: Any, new: Any) -> str:
    return " -> ".join(one if isinstance(one, str) else json.dumps(one, sort_keys=True) for one in (old, new))


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names))
