"""Text in parts with styles, broken into lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ._columns import broken

Fragment = tuple[str, str]
"""A style, as the numbers of an escape sequence such as ``1;36``, or nothing; and a text without control characters."""


def styled_lines(fragments: Sequence[Fragment], width: int, *, indent: int = 0) -> list[str]:
    r"""Return the lines of a text, broken to a width, with escape sequences for their styles.

    Args:
        fragments: the parts of the text.
        width: the maximum width of a line, in columns.
        indent: the spaces before each line but the first, if they leave most of the width.

    Example:
        >>> styled_lines([("1", "one"), ("", " two three")], 8, indent=2)
        ['\x1b[1mone\x1b[0m two', '  three']
    """
    text = "".join(part for _, part in fragments)
    indent = indent if 2 * indent < width else 0
    lines, start = [], 0
    for number, line in enumerate(_broken(text, width, indent)):
        begin = text.index(line, start) if line else start
        start = begin + len(line)
        lines.append(" " * indent * bool(number) + _escaped(_cut(fragments, begin, start)))
    return lines


def _broken(text: str, width: int, indent: int) -> Iterator[str]:
    first, *rest = broken(text, max(1, width))
    yield first
    if rest:
        # What follows the first line has less room.
        left = text[len(first) :].removeprefix(" ")
        yield from broken(left, max(1, width - indent))


def _cut(fragments: Iterable[Fragment], begin: int, end: int) -> Iterator[Fragment]:
    """Yield the parts between two positions in the text."""
    position = 0
    for style, part in fragments:
        shown = part[max(0, begin - position) : max(0, end - position)]
        if shown:
            yield style, shown
        position += len(part)


def _escaped(fragments: Iterable[Fragment]) -> str:
    return "".join(f"\x1b[{style}m{part}\x1b[0m" if style else part for style, part in fragments)
