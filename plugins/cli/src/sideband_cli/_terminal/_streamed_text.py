"""Rendering and line breaking of streamed text."""

from __future__ import annotations

from collections.abc import Callable

from sideband.rendering import Renderer

from ._columns import broken

_TAB = 4


class StreamRenderer:
    r"""Renders streamed text for a person to read.

    The result does not depend on where the text is split, also in the middle of ``\r\n`` or of a control sequence.

    Example:
        >>> renderer = StreamRenderer()
        >>> print(renderer.feed("one\r") + renderer.feed("\ntwo\x1b") + renderer.feed("[2J"))
        one
        two\x1b[2J
    """

    def __init__(self) -> None:
        self._renderer = Renderer(prose=True)
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return the rendered chunk; a carriage return at its end is held back until the next one."""
        text = self._held + piece
        self._held = "\r" if text.endswith("\r") else ""
        return self._renderer.feed(text.removesuffix("\r").replace("\r\n", "\n"))

    def end(self) -> None:
        """End the text: drop a carriage return that is held back."""
        self._renderer = Renderer(prose=True)
        self._held = ""


class LineBreaker:
    r"""Breaks streamed text into lines that fit the terminal, between words if possible.

    Args:
        width: returns the maximum width of a line, in columns.

    Attributes:
        rest: the last line, which is incomplete.

    Example:
        >>> breaker = LineBreaker(lambda: 10)
        >>> breaker.feed("one two three fo"), breaker.rest
        (['one two'], 'three fo')
        >>> breaker.feed("ur\n"), breaker.rest
        (['three four'], '')
    """

    def __init__(self, width: Callable[[], int]) -> None:
        self._width = width
        self.rest = ""

    @property
    def preview(self) -> list[str]:
        """The incomplete line, if it is not empty."""
        return [self.rest] if self.rest else []

    def feed(self, piece: str) -> list[str]:
        """Return the lines that the chunk completes."""
        width = max(1, self._width())
        *complete, self.rest = (self.rest + piece).split("\n")
        lines = [line for text in complete for line in broken(text.expandtabs(_TAB), width)]
        *more, self.rest = broken(self.rest.expandtabs(_TAB), width)
        return [*lines, *more]

    def end(self) -> list[str]:
        """Return the incomplete line, if it is not empty."""
        line, self.rest = self.rest, ""
        return [line] if line else []
