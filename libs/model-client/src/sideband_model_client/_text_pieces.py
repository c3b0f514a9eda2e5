"""Text that comes in pieces, some of which end within a character."""

from __future__ import annotations

from collections.abc import Callable

from ._strict_json import whole_characters


class TextPieces:
    r"""Puts text together from pieces. JSON can escape half of a character, so a piece may end with one.

    Args:
        count: is called with each piece before it is kept. What it raises refuses the piece.

    Example:
        >>> text = TextPieces()
        >>> text.add("a\ud83d"), text.add("\ude00b"), text.text
        ('a', '😀b', 'a😀b')
    """

    def __init__(self, count: Callable[[str], object] | None = None) -> None:
        self._count = count
        self._pieces: list[str] = []
        self._half = ""

    def add(self, piece: str) -> str:
        """Keep a piece, and return what can be shown by now: a half of a character waits for the other half."""
        if self._count is not None:
            self._count(piece)
        piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        whole = whole_characters(piece)
        if whole:
            self._pieces.append(whole)
        return whole

    @property
    def last(self) -> str:
        """The last character; empty as long as there is none."""
        return self._pieces[-1][-1] if self._pieces else ""

    @property
    def text(self) -> str:
        """All of it. Half of a character at its end is replaced."""
        return "".join(self._pieces) + whole_characters(self._half)
