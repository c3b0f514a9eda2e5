"""Cleaning and line breaking of streamed text."""

from __future__ import annotations

from collections.abc import Callable

from ._clean import clean


class StreamCleaner:
    r"""Removes control characters from streamed text.

    Characters are replaced one by one, so a control sequence split over two chunks is removed as well. Only ``\r\n``
    needs state.

    Example:
        >>> cleaner = StreamCleaner()
        >>> cleaner.feed("one\r") + cleaner.feed("\ntwo\x1b") + cleaner.feed("[2J")
        'one\ntwo�[2J'
    """

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return the cleaned chunk; a carriage return at its end is held back until the next one."""
        text = self._held + piece
        self._held = "\r" if text.endswith("\r") else ""
        return clean(text.removesuffix("\r").replace("\r\n", "\n"))

    def end(self) -> None:
        """Drop a carriage return that is held back, at the end of the text."""
        self._held = ""


class LineBreaker:
    r"""Breaks streamed text into lines that fit the terminal, between words if possible.

    Args:
        width: returns the maximum width of a line, in columns.
        columns: returns the width of a text, in columns.

    Attributes:
        rest: the last line, which is incomplete.

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
        """Return the lines that the chunk completes."""
        *complete, self.rest = (self.rest + piece).split("\n")
        lines = [line for text in complete for line in self._lines(text)]
        *more, self.rest = self._lines(self.rest)
        return [*lines, *more]

    def end(self) -> list[str]:
        """Return the incomplete line, if it is not empty."""
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
        """Return how many characters of ``text`` fit, at least one."""
        used = 0
        for index, character in enumerate(text):
            used += max(0, self._columns(character))
            if used > width:
                return max(1, index)
        return len(text)
