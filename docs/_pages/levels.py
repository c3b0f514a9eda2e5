"""The page on levels: what each op and each capability can do at most."""

from __future__ import annotations

from collections.abc import Iterator

from sideband.ops import LIMITED, Capability, Grant, Level, Lower, OpFamily, OpSpec, reach

from .capabilities import examples_of, families
from .tables import paragraph, table

__all__ = ["level_of_grant", "levels_page", "rule_text"]

_MEANINGS = {
    Level.SAFE: "has no effect outside the host",
    Level.MONITORED: "reads from outside the host, and is recorded",
    Level.CONTROLLED: "makes a change that can be reverted, or can carry data to any place",
    Level.RESTRICTED: "makes a change that cannot be reverted or that other people see",
    Level.PRIVILEGED: "can do anything",
}
# Capabilities whose levels are worth comparing; the page adds each family alone, and the examples of its scope.
_SHOWN = (
    "blobs:mode=read",
    "blobs:mode=delete",
    "crypto:op=hash|hmac",
    "files:mode=read",
    "files:mode=read|write",
    "http:host=api.github.com,method=GET",
    "http:host=api.github.com*,method=GET",
    "http:method=GET",
    "http:host=api.github.com,method=GET|PUT",
    "http:host=api.github.com",
    "secrets:mode=use",
    "secrets:mode=reveal",
    "secrets:mode=write",
    "secrets:mode=rekey",
    "sql:mode=read",
    "sql:mode=write",
)


def levels_page() -> list[str]:
    """Return the lines of the page."""
    return [
        "# Levels",
        "",
        *paragraph(
            "A level states what an effect can do to the world, and whether it can carry data to any place. Guards see "
            "the level of each effect, and the ledger records it. It follows from the op, the grant and the "
            "parameters, and is never above the level that the op declares. A tool has the highest level that the "
            "grant of its skill reaches."
        ),
        "",
        *table(["level", "meaning"], [[level.name, meaning] for level, meaning in _MEANINGS.items()]),
        "",
        "## Capabilities",
        "",
        *paragraph(
            "The level of a capability is the highest of the effects that it allows. A host or another value with a "
            "trailing `*` does not count as limited: `api.github.com*` also allows `api.github.com.example.org`. If a "
            "grant has several capabilities of a family, an effect has the highest level of those that it could need, "
            "because a redirect may lead to what another one allows. An op of another family that requires the "
            "capability cannot exceed its level: such an effect of a skill is denied. Ops that require nothing do "
            "not count; they have their level when they run."
        ),
        "",
        *table(["capability", "level"], [[f"`{text}`", level_of_grant(text).name] for text in _capabilities()]),
        "",
        "## Ops",
        "",
        *paragraph(
            "The levels of all ops, and the fields that lower them. *Needs* is what a capability of the family must "
            "allow to reach the op; an op without it can be reached with any."
        ),
        "",
        *table(["op", "requires", "needs", "level", "lower"], [_row(spec) for one in families() for spec in one.ops]),
    ]


def level_of_grant(text: str) -> Level:
    """Return the highest level that a capability reaches."""
    capability = Capability.parse(text)
    family = next(one for one in families() if one.name == capability.family)
    return reach(family.ops, Grant.of([capability.fit(family.scope)]))


def rule_text(rule: Lower) -> str:
    """Return a rule in words, such as ``MONITORED with limited `host` ``."""
    return f"{rule.level.name} with {' and '.join(_conditions(rule))}"


def _conditions(rule: Lower) -> Iterator[str]:
    for name, allowed in rule.fields:
        yield f"limited `{name}`" if allowed is LIMITED else f"`{name}={'|'.join(allowed)}`"


def _capabilities() -> list[str]:
    found: list[str] = []
    for family in families():
        if any(spec.requires == family.name for spec in family.ops):
            found += [family.name, *_examples(family)]
    return list(dict.fromkeys(found))


def _examples(family: OpFamily) -> list[str]:
    shown = [text for text in _SHOWN if text.startswith(f"{family.name}:")]
    return [*shown, *(examples_of(family.scope) if family.scope is not None else ())]


def _row(spec: OpSpec) -> list[str]:
    needs = ", ".join(f"`{name}={'|'.join(values)}`" for name, values in spec.needs.items())
    return [
        f"[`{spec.name}`](ops.md#{spec.name.replace('.', '')})",
        f"`{spec.requires}`" if spec.requires else "nothing",
        needs or "-",
        spec.level.name,
        "; ".join(map(rule_text, spec.lower)) or "-",
    ]
