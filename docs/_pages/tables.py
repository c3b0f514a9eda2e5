"""Paragraphs and tables in Markdown, and values in TOML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

__all__ = ["paragraph", "table", "toml"]


def paragraph(text: str) -> list[str]:
    """Return the lines of a paragraph."""
    return wrap(text, 118, break_long_words=False, break_on_hyphens=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table. A column with the title ``meaning`` contains prose."""
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        cells = [_prose(one) if title == "meaning" else one for title, one in zip(columns, row, strict=True)]
        yield f"| {' | '.join(map(_cell, cells))} |"


def toml(value: Any) -> str:
    """Return a value in TOML as a code span, or ``absent`` for ``None``.

    Example:
        >>> toml(True), toml(None), toml({"a": ["b"]})
        ('`true`', 'absent', '`{a = ["b"]}`')
    """
    return "absent" if value is None else f"`{_plain(value)}`"


def _prose(text: str) -> str:
    """Capitalize a description, and drop the full stop of a single sentence."""
    first = text.partition(" ")[0]
    if first.rstrip(",;:.").isalpha() and " = " not in text:
        text = text[0].upper() + text[1:]
    return text if ". " in text else text.removesuffix(".")


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | Path):
        return f'"{value}"'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {_plain(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        return f"[{', '.join(_plain(one) for one in value)}]"
    return str(value)


def _cell(text: str) -> str:
    """Escape a text for use in a table cell."""
    return " ".join(text.split()).replace("|", "\\|")
