"""The page on hooks: a table of all hooks, then each with its example."""

from __future__ import annotations

from sideband.hooks import HOOK_SPECS

from .tables import paragraph, table

__all__ = ["hooks_page"]


def hooks_page() -> list[str]:
    """Return the lines of the page."""
    lines = [
        "# Hooks",
        "",
        *paragraph(
            "Implement a hook with `@hookimpl async def NAME(event, ctx)`. The parameter `ctx` is optional, and "
            "synchronous functions are accepted. The deadline applies to all implementations of a hook together."
        ),
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
