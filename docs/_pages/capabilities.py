"""Capabilities: how they are written, and what those of each family may limit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import entry_points

from sideband.ops import Capability, OpFamily, Scope

from .docstrings import attributes, first_paragraph
from .tables import paragraph, table

__all__ = ["capabilities_page", "examples_of", "families"]

_CODE = re.compile(r"`([^`]+)`")
_ANYTHING = "any value"


def capabilities_page() -> list[str]:
    """The lines of the page."""
    lines = [
        "# Capabilities",
        "",
        *paragraph(
            "A capability is the right to use the ops of one family, within limits: `family`, or "
            "`family:field=value|value,field=value`. A `*` at the end of a value stands for whatever follows; "
            "`%`, `,`, `|`, `=`, `*` and white space inside of one are percent-encoded. A field that is not written is "
            "no limit, unless its family says what it means then. The order does not matter, and a capability that "
            "another one covers adds nothing."
        ),
        "",
        *paragraph(
            "A skill asks for capabilities under `sideband.capabilities` in its SKILL.md, separated by spaces. It gets "
            "none by asking: a person, `--grant`, or `[grants]` of the [settings](settings.md) gives them. What "
            "is granted is compared field by field with what an effect needs; a child effect can have less, never more."
        ),
        "",
        *table(
            ["family", "what may be limited", "ops that need it"],
            [
                [
                    f"[`{family.name}`](#{family.name})",
                    ", ".join(f"`{name}`" for name in _fields(family)) or "nothing",
                    ", ".join(_ops(family)) or "none",
                ]
                for family in families()
            ],
        ),
    ]
    for family in families():
        lines += ["", f"## {family.name}", "", family.doc]
        if family.scope is not None:
            lines += ["", *_scope(family.scope)]
    return lines


def families() -> list[OpFamily]:
    """The installed families, by name."""
    found = [point.load().sideband_ops() for point in entry_points(group="sideband.v1.op")]
    return sorted(found, key=lambda family: family.name)


def examples_of(scope: type[Scope]) -> list[str]:
    """The capabilities that the docstring of a scope shows, each of which can be granted."""
    found = [text for text in _CODE.findall(scope.__doc__ or "") if text.startswith(f"{scope.family}:")]
    return list(dict.fromkeys(found))


def _scope(scope: type[Scope]) -> Iterator[str]:
    meanings = attributes(scope)
    defaults = Capability(scope.family).fit(scope)
    standing = dict(part.split("=", 1) for part in str(defaults).partition(":")[2].split(",") if part)
    yield from table(
        ["field", "if it is not written", "meaning"],
        [
            [f"`{name}`", f"`{standing[name]}`" if name in standing else _ANYTHING, first_paragraph(meanings[name])]
            for name in scope.field_names()
        ],
    )
    examples = examples_of(scope)
    if examples:
        yield ""
        yield from paragraph(f"For example: {', '.join(f'`{one}`' for one in examples)}.")


def _fields(family: OpFamily) -> tuple[str, ...]:
    return family.scope.field_names() if family.scope is not None else ()


def _ops(family: OpFamily) -> list[str]:
    return [f"`{spec.name}`" for spec in family.ops if spec.requires is not None]
