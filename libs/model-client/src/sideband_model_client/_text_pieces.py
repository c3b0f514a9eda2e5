"""Text that arrives in pieces, which may split a surrogate pair."""

from __future__ import annotations

from collections.abc import Callable

from ._strict_json import whole_characters


class TextPieces:
    r"""Joins pieces of text. JSON can escape half of a surrogate pair, so a piece may end with one.

    Args:
        count: a function called with each piece before it is added. It may raise to reject the piece.

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
        """Add a piece and return the text that can be shown now. A high surrogate waits for the low one."""
        if self._count is not None:
            self._count(piece)
        piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        text = whole_characters(piece)
        if text:
            self._pieces.append(text)
        return text

    @property
    def last(self) -> str:
        """The last character, or an empty string."""
        return self._pieces[-1][-1] if self._pieces else ""

    @property
    def text(self) -> str:
        """The full text. An unpaired surrogate at the end is replaced."""
        return "".join(self._pieces) + whole_characters(self._half)
