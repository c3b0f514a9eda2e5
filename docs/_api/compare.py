"""The comparison of two descriptions: each difference is an addition or a break, by one of the rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen
from packaging.version import Version

from .alignment import aligned
from .properties import changed_properties
from .python import Facts
from .rules import RULES, Rule, Verdict

__all__ = ["Change", "compare", "merged"]

Fact = Mapping[str, Any]

_NESTED = ("python:", "command:", "setting:")
_MEMBERS = ("method", "class method", "static method", "attribute")


@frozen
class Change:
    """One difference between two descriptions.

    Attributes:
        rule: the rule that applies.
        path: the path of the part that changed.
        detail: what changed, such as ``int -> str``.
    """

    rule: Rule
    path: str
    detail: str = ""

    @property
    def is_break(self) -> bool:
        """Whether existing programs may fail."""
        return self.rule.verdict is Verdict.BREAK

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.rule.verdict.value}: {self.path}: {self.rule.name}{detail}. {self.rule.why}"


def compare(old: Mapping[str, Any], new: Mapping[str, Any], *, version: str = "0") -> list[Change]:
    """Return the differences between two descriptions, sorted by path.

    Args:
        old: the descriptions by path, as they were recorded.
        new: the descriptions now.
        version: the version of the new one; deprecations of the old one that name it, or an earlier one, are due.

    Example:
        >>> str(compare({"op:a.b": {"kind": "op"}}, {})[0])
        'break: op:a.b: removed. Programs that use it fail.'
    """
    before, after = aligned(old, new)
    return sorted(_changes(before, after, version), key=lambda change: (change.path, change.rule.name))


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> Facts:
    """Return the old description with the additions of the new one. What breaks stays as it was recorded."""
    _, after = aligned(old, new)
    broken = {change.path for change in compare(old, new) if change.is_break}
    facts: Facts = dict(old)
    for path, fact in after.items():
        if path in old and path not in broken:
            facts[path] = _with_constructor(fact, old[path], path)
        elif path not in old and broken.isdisjoint(_line(path)):
            facts[path] = fact
    return facts


def _with_constructor(fact: dict[str, Any], old: Fact, path: str) -> dict[str, Any]:
    """Return a new description. A class whose own constructor was recorded keeps it, also if a base defines it now."""
    own = path.partition(":")[2]
    return {**fact, "constructor": own} if old.get("constructor") == own else fact


def _line(path: str) -> Iterator[str]:
    """Yield a path, and that of each part around it."""
    while path:
        yield path
        path = _parent(path)


def _changes(old: Facts, new: Facts, version: str) -> Iterator[Change]:
    ancestors = _ancestors(old) | _ancestors(new)
    for path in old.keys() | new.keys():
        if path not in new:
            if old[path]["kind"] != "deprecation" and _parent(path) not in old.keys() - new.keys():
                is_due = _is_due(path, old, version)
                yield Change(RULES["removed-as-announced" if is_due else "removed"], path)
        elif path not in old:
            if _parent(path) not in new.keys() - old.keys():
                yield Change(RULES[_rule_of_addition(path, old, new)], path)
        elif old[path] != new[path]:
            use = "both" if _is_of_interface(path, old) else ""
            for rule, detail in changed_properties(old[path], new[path], ancestors, use):
                yield Change(RULES[rule], path, detail)


def _rule_of_addition(path: str, old: Facts, new: Facts) -> str:
    fact = new[path]
    if fact["kind"] == "deprecation" and not _lasts(fact):
        return "ends-too-early"
    owner = old.get(_parent(path), {})
    if fact["kind"] in _MEMBERS and (owner.get("kind") == "interface" or fact.get("abstract")):
        return "must-be-implemented"
    if fact["kind"] == "parameter" and _is_of_interface(path, old):
        return "must-be-implemented"
    return "required" if fact.get("required") else "added"


def _is_of_interface(path: str, facts: Facts) -> bool:
    """Return whether plugins implement a method, or the method of a parameter."""
    owner = path.partition("(")[0]
    return facts.get(_parent(owner), {}).get("kind") in ("interface", "abstract class")


def _is_due(path: str, old: Facts, version: str) -> bool:
    """Return whether a recorded deprecation announced a removal for this version, and lasted as promised."""
    names = (f"{path}.", f"{path.partition(':')[2]}.")
    reached = Version(Version(version).base_version)
    for one, fact in old.items():
        what = one.removeprefix("deprecation:")
        if fact["kind"] == "deprecation" and any(name.startswith((f"{what}.", f"{what}(")) for name in names):
            return _lasts(fact) and Version(fact["removed_in"]) <= reached
    return False


def _lasts(deprecation: Fact) -> bool:
    """Return whether a deprecation lasts as long as the page on compatibility promises, as far as versions show it."""
    since, end = Version(deprecation["since"]), Version(deprecation["removed_in"])
    if end.micro or end.is_prerelease:
        return False
    if end.major == since.major:
        return since.major == 0 and end.minor >= since.minor + 2
    return end.major > since.major


def _parent(path: str) -> str:
    """Return the path of the part that contains a part; or an empty string."""
    if path.endswith(")"):
        return path[: path.rindex("(")]
    return path.rpartition(".")[0] if path.startswith(_NESTED) else ""


def _ancestors(facts: Facts) -> dict[str, list[str]]:
    """Return the ancestors of classes; all names without their modules, as in annotations."""
    return {
        path.rpartition(".")[2]: [base.rpartition(".")[2] for base in fact["bases"]]
        for path, fact in facts.items()
        if "bases" in fact
    }
