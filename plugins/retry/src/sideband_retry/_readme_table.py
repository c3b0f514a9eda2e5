"""The classification as a table of the README: ``python -m sideband_retry._readme_table`` prints it."""

from __future__ import annotations

from ._classes import CLASSES


def render() -> str:
    """The table, in Markdown."""
    lines = ["| class | what it means | statuses | phrases | what follows |", "|---|---|---|---|---|"]
    for kind, one in CLASSES.items():
        statuses = ", ".join(map(str, one.statuses)) or "none"
        phrases = str(len(one.phrases)) if one.phrases else "none"
        lines.append(f"| `{kind.value}` | {one.meaning} | {statuses} | {phrases} | {one.follows.value} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(render())
