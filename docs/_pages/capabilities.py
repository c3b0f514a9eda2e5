"""The page on capabilities: their syntax, and the fields of each family."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sideband.ops import Capability, OpFamily, Scope

from .docstrings import attributes, first_paragraph
from .packages import plugin_points
from .tables import paragraph, table

__all__ = ["capabilities_page", "examples_of", "families"]

_CODE = re.compile(r"`([^`]+)`")
_ANYTHING = "any value"


def capabilities_page() -> list[str]:
    """Return the lines of the page."""
    lines = [
        "# Capabilities",
        "",
        *paragraph(
            "A capability is the right to use the ops of one family, within limits. It is written `family` or "
            "`family:field=value|value,field=value`. A trailing `*` in a value matches any suffix. The characters "
            "`%`, `,`, `|`, `=`, `*` and white space in a value are percent-encoded. A field that is left out matches "
            "any value, unless the family defines a default. The order of fields and values does not matter, and a "
            "capability that is covered by another one has no effect."
        ),
        "",
        *paragraph(
            "A skill requests capabilities under `sideband.capabilities` in its SKILL.md, separated by spaces. They "
            "are granted by the user, by `--grant`, or by `[grants]` in the [settings](settings.md). A grant is "
            "compared field by field with the requirements of an effect. A child effect can have fewer rights than its "
            "parent, but never more."
        ),
        "",
        *table(
            ["family", "fields", "ops that require it"],
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
    """Return the installed families, sorted by name."""
    found = [point.load().sideband_ops() for point in plugin_points("sideband.v1.op")]
    return sorted(found, key=lambda family: family.name)


def examples_of(scope: type[Scope]) -> list[str]:
    """Return the example capabilities in the docstring of a scope. Each can be granted."""
    found = [text for text in _CODE.findall(scope.__doc__ or "") if text.startswith(f"{scope.family}:")]
    return list(dict.fromkeys(found))


def _scope(scope: type[Scope]) -> Iterator[str]:
    meanings = attributes(scope)
    defaults = Capability(scope.family).fit(scope)
    default_values = dict(part.split("=", 1) for part in str(defaults).partition(":")[2].split(",") if part)
    yield from table(
        ["field", "default", "meaning"],
        [
            [
                f"`{name}`",
                f"`{default_values[name]}`" if name in default_values else _ANYTHING,
                first_paragraph(meanings[name]),
            ]
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
