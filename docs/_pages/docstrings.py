"""What docstrings say, as Markdown."""

from __future__ import annotations

import re
from inspect import cleandoc

__all__ = ["attributes", "first_paragraph", "section"]


def first_paragraph(doc: str | None) -> str:
    """What a docstring says first, on one line, its code marked as in Markdown."""
    return re.sub(r"``+", "`", " ".join((doc or "").strip().partition("\n\n")[0].split()))


def attributes(owner: type) -> dict[str, str]:
    """What the docstring of a class says of each of its attributes or arguments."""
    return section(owner.__doc__, "Attributes|Args")


def section(doc: str | None, titles: str) -> dict[str, str]:
    """What a docstring lists under a title, by name: the arguments, the attributes, the errors."""
    part = re.split(rf"^(?:{titles}):\n", cleandoc(doc or ""), maxsplit=1, flags=re.MULTILINE)
    body = part[1].partition("\n\n")[0] if len(part) > 1 else ""
    meanings: dict[str, str] = {}
    for names, text in re.findall(r"^ {4}(\w[\w, ]*): (.+?)(?=^ {4}\w|\Z)", body, re.MULTILINE | re.DOTALL):
        group = [name.strip() for name in names.split(",")]
        together = f"{', '.join(f'`{name}`' for name in group)}: " if len(group) > 1 else ""
        meanings.update(dict.fromkeys(group, together + first_paragraph(text)))
    return meanings
