"""Print the table of failure classes for the README: ``python -m sideband_retry._readme_table``."""

from __future__ import annotations

from ._classes import CLASSES


def render() -> str:
    """Return the table in Markdown."""
    lines = ["| class | meaning | statuses | known phrases (number) | reaction |", "|---|---|---|---|---|"]
    for kind, one in CLASSES.items():
        statuses = ", ".join(map(str, one.statuses)) or "none"
        phrases = str(len(one.phrases)) if one.phrases else "none"
        lines.append(f"| `{kind.value}` | {one.meaning} | {statuses} | {phrases} | {one.follows.value} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(render())
