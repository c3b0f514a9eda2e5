"""Markdown of models, shown with styles as it is streamed.

No line and no word of the text is hidden: only the marks of a style that is shown are left out, such as ``**``. Links,
HTML and comments are shown as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ._columns import broken, columns
from ._highlighting import CodeHighlighter
from ._styled import Fragment, styled_lines

_BOLD, _ITALIC, _CODE, _HEADING, _ASIDE, _STRUCK = "1", "3", "36", "1;34", "2", "9"
_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})[ \t]*([\w+#-]*)[^`]*\Z")
_HEADING_LINE = re.compile(r" {0,3}#{1,6}[ \t]+(.+?)(?:[ \t]+#+)?[ \t]*\Z")
_LIST_LINE = re.compile(r"([ \t]*)([-*+]|\d{1,9}[.)])([ \t]+)(.*)\Z")
_QUOTE_LINE = re.compile(r" {0,3}>")
_TABLE_LINE = re.compile(r" {0,3}\|.*\|[ \t]*\Z")
_CELL_END = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r":?-+:?")
_INLINE = re.compile(
    r"(?P<escaped>\\[\\`*~])"
    r"|(?P<ticks>`+)(?P<code>[^`](?:.*?[^`])?)(?P=ticks)(?!`)"
    r"|\*\*(?P<bold>[^\s*](?:[^*]*[^\s*])?)\*\*"
    r"|(?<![\w*])\*(?P<italic>[^\s*](?:[^*]*[^\s*])?)\*(?![\w*])"
    r"|~~(?P<struck>[^\s~](?:[^~]*[^\s~])?)~~"
)
_MAX_LINE = 8_000
_MAX_STYLED = 2_000  # a hostile text could make the search for styles slow
_MAX_ROWS = 200
_MAX_PREVIEW = 6
_TAB = 4


class MarkdownText:
    r"""Breaks streamed Markdown into lines with styles.

    A line is shown with its styles once it is complete, and until then as it is.

    Args:
        width: returns the maximum width of a line, in columns.

    Example:
        >>> text = MarkdownText(lambda: 20)
        >>> text.feed("# One\n- **two** thr"), text.preview
        (['\x1b[1;34mOne\x1b[0m'], ['- **two** thr'])
        >>> text.feed("ee\n")
        ['• \x1b[1mtwo\x1b[0m three']
    """

    def __init__(self, width: Callable[[], int]) -> None:
        self._width = width
        self._rest = ""
        self._rows: list[str] = []
        self._fence = ""
        self._code: CodeHighlighter | None = None

    @property
    def preview(self) -> list[str]:
        """The last lines of what is not complete yet, without styles."""
        return (
            [*self._rows, *broken(self._rest.expandtabs(_TAB), self._room)][-_MAX_PREVIEW:]
            if self._rest or self._rows
            else []
        )

    def feed(self, piece: str) -> list[str]:
        """Return the lines that a part of the text completes."""
        *complete, self._rest = (self._rest + piece).split("\n")
        lines = [line for one in complete for line in self._line(one)]
        if len(self._rest) > _MAX_LINE:
            lines += self._line(self._rest)
            self._rest = ""
        return lines

    def end(self) -> list[str]:
        """Return what is not complete, and begin again: another text may follow."""
        rest, self._rest = self._rest, ""
        lines = [*(self._line(rest) if rest else ()), *self._table()]
        self._code = None
        return lines

    @property
    def _room(self) -> int:
        return max(1, self._width())

    def _line(self, text: str) -> list[str]:
        text = text.expandtabs(_TAB)
        if self._code is None and _TABLE_LINE.match(text) and len(self._rows) < _MAX_ROWS:
            self._rows.append(text)
            return []
        return [*self._table(), *self._shown(text)]

    def _shown(self, text: str) -> list[str]:
        if (fence := _FENCE.match(text)) and self._opens_or_closes(fence[2], fence[3]):
            return styled_lines([(_ASIDE, text)], self._room)
        if self._code is not None:
            return styled_lines(self._code.line(text), self._room)
        if heading := _HEADING_LINE.match(text):
            return styled_lines([(_HEADING, part) for _, part in _inline(heading[1])], self._room)
        if _QUOTE_LINE.match(text):
            return styled_lines([(_ITALIC, text)], self._room, indent=2)
        if item := _LIST_LINE.match(text):
            mark = "•" if item[2] in "-*+" else item[2]
            start = f"{item[1].expandtabs(4)}{mark} "
            return styled_lines([("", start), *_inline(item[4])], self._room, indent=columns(start))
        return styled_lines([*_inline(text)], self._room)

    def _opens_or_closes(self, marks: str, language: str) -> bool:
        """Begin or end a block of code. Return whether the line does."""
        if self._code is None:
            self._fence, self._code = marks, CodeHighlighter(language)
            return True
        if marks.startswith(self._fence) and not language:
            self._code = None
            return True
        return False

    def _table(self) -> list[str]:
        """Return the rows of the table that has ended, with aligned columns if they fit."""
        rows, self._rows = self._rows, []
        if len(rows) < 2:
            return [line for row in rows for line in styled_lines([*_inline(row)], self._room)]
        cells = [
            [cell.strip() for cell in _CELL_END.split(row.strip().removeprefix("|").removesuffix("|"))] for row in rows
        ]
        count = max(map(len, cells))
        shown = [[[*_inline(cell)] for cell in [*row, *[""] * (count - len(row))]] for row in cells]
        is_rule = [all(map(_RULE.fullmatch, row)) for row in cells]
        widths = [
            max([1, *(_columns(row[index]) for row, rule in zip(shown, is_rule, strict=True) if not rule)])
            for index in range(count)
        ]
        if sum(widths) + 3 * count + 1 > self._room:
            return [line for row in rows for line in styled_lines([*_inline(row)], self._room)]
        return [
            line
            for number, row in enumerate(shown)
            for line in styled_lines(
                [*(_ruled(widths) if is_rule[number] else _padded(row, widths, header=number == 0))], self._room
            )
        ]


def _inline(text: str) -> Iterator[Fragment]:
    """Yield the parts of a line."""
    position = 0
    for found in _INLINE.finditer(text) if len(text) <= _MAX_STYLED else ():
        yield "", text[position : found.start()]
        kind = found.lastgroup or ""
        yield _INLINE_STYLES[kind], found[kind]
        position = found.end()
    yield "", text[position:]


_INLINE_STYLES = {"escaped": "", "code": _CODE, "bold": _BOLD, "italic": _ITALIC, "struck": _STRUCK}


def _columns(fragments: list[Fragment]) -> int:
    return sum(columns(part) for _, part in fragments)


def _ruled(widths: list[int]) -> Iterator[Fragment]:
    yield _ASIDE, "|" + "|".join("-" * (width + 2) for width in widths) + "|"


def _padded(row: list[list[Fragment]], widths: list[int], *, header: bool) -> Iterator[Fragment]:
    for cell, width in zip(row, widths, strict=True):
        yield _ASIDE, "| "
        yield from ((_BOLD if header else style, part) for style, part in cell)
        yield "", " " * (width - _columns(cell) + 1)
    yield _ASIDE, "|"
