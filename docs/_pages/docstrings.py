"""Converts parts of docstrings to Markdown."""

from __future__ import annotations

import re
from inspect import cleandoc

__all__ = ["attributes", "first_paragraph", "section"]


def first_paragraph(doc: str | None) -> str:
    """Return the first paragraph of a docstring on one line, with Markdown code spans."""
    return re.sub(r"``+", "`", " ".join((doc or "").strip().partition("\n\n")[0].split()))


def attributes(owner: type) -> dict[str, str]:
    """Return the descriptions of the attributes or arguments in the docstring of a class, by name."""
    return {**section(owner.__doc__, "Args"), **section(owner.__doc__, "Attributes")}


def section(doc: str | None, titles: str) -> dict[str, str]:
    """Return the items of a section of a docstring, such as ``Args``, by name."""
    part = re.split(rf"^(?:{titles}):\n", cleandoc(doc or ""), maxsplit=1, flags=re.MULTILINE)
    body = part[1].partition("\n\n")[0] if len(part) > 1 else ""
    meanings: dict[str, str] = {}
    for names, text in re.findall(r"^ {4}(\w[\w, ]*): (.+?)(?=^ {4}\w|\Z)", body, re.MULTILINE | re.DOTALL):
        group = [name.strip() for name in names.split(",")]
        together = f"{', '.join(f'`{name}`' for name in group)}: " if len(group) > 1 else ""
        meanings.update(dict.fromkeys(group, together + first_paragraph(text)))
    return meanings
