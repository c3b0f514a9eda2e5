"""Exact replacements in a text, all together."""

from __future__ import annotations

from collections.abc import Sequence

from .._errors import TextNotEncodable, TextNotFound, TextNotUnique, TextTooLong
from ._models import Replacement
from ._text import StoredText

_MOST_CHARACTERS = 16 * 1024 * 1024  # a few replacements of all occurrences could fill the memory


def replaced(name: str, stored: StoredText, edits: Sequence[Replacement]) -> str:
    """Return the text with all replacements.

    Raises:
        TextNotFound: if a text to replace does not occur.
        TextNotUnique: if it occurs several times, and not all are to be replaced.
        TextTooLong: if the text became too long.
    """
    text = stored.text
    for number, one in enumerate(edits, 1):
        old, new = (part.replace("\r\n", "\n") if stored.crlf else part for part in (one.old, one.new))
        count = text.count(old)
        if count == 0:
            raise TextNotFound(name, number, _near(text, old))
        if count > 1 and not one.all:
            raise TextNotUnique(name, number, _lines_of(text, old))
        size = len(text) + count * (len(new) - len(old))
        if size > _MOST_CHARACTERS:
            raise TextTooLong(name, number, size, _MOST_CHARACTERS)
        text = text.replace(old, new)
    return text


def _near(text: str, old: str) -> str:
    """Return a remark if the text occurs with other white space."""
    if "".join(old.split()) in "".join(text.split()):
        return ", but does with other spaces or line breaks"
    return ""


def _lines_of(text: str, old: str) -> list[int]:
    lines, line, start = [], 1, 0
    while (found := text.find(old, start)) >= 0:
        line += text.count("\n", start, found)
        lines.append(line)
        line += old.count("\n")
        start = found + len(old)
    return lines


def encoded(name: str, stored: StoredText, text: str) -> bytes:
    """Return a text in the form of the stored one.

    Raises:
        TextNotEncodable: if the encoding cannot express a character.
    """
    try:
        return stored.encode(text)
    except UnicodeEncodeError as error:
        raise TextNotEncodable(name, stored.encoding, text[error.start]) from error
