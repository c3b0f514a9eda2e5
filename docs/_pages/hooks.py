"""All hooks: the table, then each with its example."""

from __future__ import annotations

from sideband.hooks import HOOK_SPECS

from .tables import table

__all__ = ["hooks_page"]


def hooks_page() -> list[str]:
    """The lines of the page."""
    lines = [
        "# Hooks",
        "",
        "Implement one with `@hookimpl async def NAME(event, ctx)`; `ctx` may be left out, and plain functions are",
        "accepted. All implementations of a hook together have its deadline.",
        "",
        *table(
            ["hook", "kind", "may return", "if a plugin fails", "deadline"],
            [
                [
                    f"[`{spec.name}`](#{spec.name})",
                    spec.kind.value,
                    spec.returns,
                    spec.on_failure.value,
                    f"{spec.deadline:g} s",
                ]
                for spec in HOOK_SPECS.values()
            ],
        ),
    ]
    for spec in HOOK_SPECS.values():
        lines += ["", f"## {spec.name}", "", f"Event: `{spec.event.__name__}`", "", "```text", spec.doc.strip(), "```"]
    return lines
