r"""Text from skills, models, servers and files, made safe to show to a person.

All text passes ``render`` before it reaches a terminal or a question. It escapes every character that is invisible,
moves the cursor or changes the order of others, such as ``\x1b``, ``\u202e`` and ``\u200b``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from unicodedata import category

__all__ = ["MARK", "Renderer", "indented", "quoted", "render", "whole_characters"]

MARK = "▌"
"""The first character of sideband's own lines at a terminal. Rendered text never contains it."""

_UNUSUAL = re.compile(r"[^ -~]+")
# The characters that Unicode counts as printable, but that show nothing.
_BLANK = frozenset(
    map(chr, (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x3164, *range(0xFE00, 0xFE10)))
) | {"\uffa0", *map(chr, range(0xE0100, 0xE01F0))}
_SELECTORS = "\ufe0e\ufe0f"  # of the text and the emoji form of a character
_KEYCAPS = tuple("0123456789#*")
_MAX_STACKED = 8


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


class Renderer:
    """Renders a text that arrives in pieces. The result does not depend on where the text is split.

    Args:
        prose: whether to keep line feeds, tabs, all spaces, and the joiners and selectors that emoji and some scripts
            need; for text to read, not for questions.
        escape: returns what is shown in place of a character, by default an escape sequence of Python.
    """

    def __init__(self, *, prose: bool = False, escape: Callable[[str], str] = _escaped) -> None:
        self._prose = prose
        self._escape = escape
        self._before = ""
        self._stacked = 0

    def feed(self, piece: str) -> str:
        """Return the rendered piece."""
        shown = _UNUSUAL.sub(self._run, piece)
        if " " <= piece[-1:] <= "~":
            self._before, self._stacked = piece[-1], 0
        return shown

    def _run(self, found: re.Match[str]) -> str:
        if found.start():
            self._before, self._stacked = found.string[found.start() - 1], 0
        return "".join(map(self._character, found[0]))

    def _character(self, one: str) -> str:
        kind = category(one)
        # Unicode counts conjoining Hangul as letters, but terminals stack them as they do accents.
        stacks = kind[0] == "M" or "\u1160" <= one <= "\u11ff" or "\ud7b0" <= one <= "\ud7ff"
        self._stacked = self._stacked + 1 if stacks or kind == "Cf" else 0
        if one in _SELECTORS or not one.isprintable():
            keeps = self._prose and self._is_prose(one, kind)
        else:
            based = not stacks or not self._before.isascii() or self._before.isalnum()
            keeps = based and one not in _BLANK and one != MARK
        shown = one if keeps and self._stacked <= _MAX_STACKED else self._escape(one)
        self._before = shown[-1]
        return shown

    def _is_prose(self, one: str, kind: str) -> bool:
        """Return whether a character without a shape of its own belongs to ordinary text."""
        if one in "\u200c\u200d":  # the joiners of emoji, and of Persian and Indic letters
            return not self._before.isascii() and category(self._before)[0] in "LMS"
        if one in _SELECTORS:
            return self._before in _KEYCAPS if self._before.isascii() else category(self._before)[0] in "LPS"
        # Newer emoji are unknown to the tables of older versions of Python.
        return one in "\n\t" or kind == "Zs" or (kind == "Cn" and "\U0001f000" <= one < "\U0001fb00")


def render(text: str, *, prose: bool = False, escape: Callable[[str], str] = _escaped) -> str:
    r"""Return text without any character that can hide, forge or reorder text. See ``Renderer`` for the arguments.

    Example:
        >>> print(render("a\nb\u202e"))
        a\nb\u202e
    """
    return Renderer(prose=prose, escape=escape).feed(text.replace("\r\n", "\n") if prose else text)


def indented(text: str) -> list[str]:
    """Return the lines of a message. All but the first are indented, so that none looks like another message."""
    first, *rest = render(text, prose=True).split("\n")
    return [first, *(f"  {line}" for line in rest)]


def quoted(text: str) -> str:
    r"""Quote a value of a preview or a question on one line, so that it cannot look like the words around it.

    It is not cut here: the host redacts a preview before it cuts it, because it cannot recognize a part of a secret.

    Example:
        >>> print(quoted("notes.txt"), quoted("a`\nb"))
        `notes.txt` "a`\nb"
    """
    if "`" not in text and render(text) == text:
        return f"`{text}`"
    return '"' + render(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def whole_characters(text: str) -> str:
    r"""Return a text with lone surrogates replaced, which neither JSON, nor files, nor terminals support.

    Example:
        >>> whole_characters("a \ud800 b") == "a \ufffd b"
        True
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
