"""Text that comes in pieces, made safe for a terminal and broken into lines that fit it."""

from __future__ import annotations

from collections.abc import Callable

from ._clean import clean


class StreamCleaner:
    r"""Cleans text piece by piece.

    Each character is judged alone, so no sequence gets through because it was split over two pieces. Only the end of a
    line may have two characters.

    Example:
        >>> cleaner = StreamCleaner()
        >>> cleaner.feed("one\r") + cleaner.feed("\ntwo\x1b") + cleaner.feed("[2J")
        'one\ntwo�[2J'
    """

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """The piece as it may be shown; a carriage return at its end waits for what follows."""
        text = self._held + piece
        self._held = "\r" if text.endswith("\r") else ""
        return clean(text.removesuffix("\r").replace("\r\n", "\n"))

    def end(self) -> None:
        """Nothing follows what was fed so far."""
        self._held = ""


class LineBreaker:
    r"""Breaks text that comes in pieces into lines no wider than a terminal, between words where there are any.

    Args:
        width: tells how wide a line may be, in columns.
        columns: tells how wide a text is, in columns.

    Attributes:
        rest: the last line, which is not complete.

    Example:
        >>> breaker = LineBreaker(lambda: 10, len)
        >>> breaker.feed("one two three fo"), breaker.rest
        (['one two'], 'three fo')
        >>> breaker.feed("ur\n"), breaker.rest
        (['three four'], '')
    """

    def __init__(self, width: Callable[[], int], columns: Callable[[str], int]) -> None:
        self._width = width
        self._columns = columns
        self.rest = ""

    def feed(self, piece: str) -> list[str]:
        """The lines that the piece completes."""
        *complete, self.rest = (self.rest + piece).split("\n")
        lines = [line for text in complete for line in self._lines(text)]
        *more, self.rest = self._lines(self.rest)
        return [*lines, *more]

    def end(self) -> list[str]:
        """The line that was not complete; none if there was nothing on it."""
        line, self.rest = self.rest, ""
        return [line] if line else []

    def _lines(self, text: str) -> list[str]:
        lines = []
        width = max(1, self._width())
        while self._columns(text) > width:
            fits = self._fitting(text, width)
            space = text.rfind(" ", 0, fits + 1)
            cut = space if text[: max(space, 0)].strip() else fits
            lines.append(text[:cut])
            text = text[cut:].removeprefix(" ")
        return [*lines, text]

    def _fitting(self, text: str, width: int) -> int:
        """How many characters of ``text`` fit, at least one."""
        used = 0
        for index, character in enumerate(text):
            used += max(0, self._columns(character))
            if used > width:
                return max(1, index)
        return len(text)
