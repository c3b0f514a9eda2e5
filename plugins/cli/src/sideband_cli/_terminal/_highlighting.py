"""Colors for code, by the lexers of Pygments."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._styled import Fragment

# Only lexers that Pygments has itself: another name would make it import every plugin for lexers. The name is chosen by
# a model.
_LEXERS = """
    bash c c++ cmake cpp csharp css csv diff docker dockerfile elixir fish go graphql haskell html http ini java
    javascript js json julia jsx kotlin lua make makefile markdown md nix objective-c perl php powershell protobuf
    py python pytb r rb rs ruby rust scala scss sh shell sql swift terraform toml ts tsx typescript vim xml yaml yml
    zig zsh
"""
_KNOWN = frozenset(_LEXERS.split())
_MAX_LINE = 400
_CONTEXT_LINES = 40  # so that a text of several lines is recognized, at a limited cost for each line

_STYLES = {
    "Comment": "2",
    "Generic.Deleted": "31",
    "Generic.Heading": "1",
    "Generic.Inserted": "32",
    "Generic.Subheading": "36",
    "Keyword": "35",
    "Literal.Number": "36",
    "Literal.String": "32",
    "Name.Builtin": "36",
    "Name.Class": "1",
    "Name.Decorator": "33",
    "Name.Exception": "31",
    "Name.Function": "34",
    "Name.Tag": "34",
    "Operator.Word": "35",
}


class CodeHighlighter:
    """Colors the lines of one block of code, each as it is complete.

    Args:
        language: the language, as the block names it. The lines of an unknown one have no colors.
    """

    def __init__(self, language: str) -> None:
        self._lexer = _lexer(language.lower())
        self._lines: deque[str] = deque(maxlen=_CONTEXT_LINES)

    def line(self, text: str) -> list[Fragment]:
        """Return the parts of the next line. Together, they are the line."""
        if self._lexer is None or len(text) > _MAX_LINE:
            self._lines.clear()
            return [("", text)]
        self._lines.append(text)
        *_, last = _lines(self._lexer.get_tokens("\n".join(self._lines)))
        # A lexer may change a line, and what is shown must be what was sent.
        return last if "".join(part for _, part in last) == text else [("", text)]


def diff_style(line: str) -> str:
    """Return the style of a line of a difference between texts; nothing for other lines."""
    return _DIFF_STYLES.get(line[:1], "") if not line.startswith("@") or line.startswith("@@") else ""


_DIFF_STYLES = {"+": "32", "-": "31", "@": "36"}


def _lexer(language: str) -> Any:
    if language not in _KNOWN:
        return None
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]  # it has no types

    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


def _lines(tokens: Iterable[tuple[Any, str]]) -> Iterator[list[Fragment]]:
    line: list[Fragment] = []
    for kind, value in tokens:
        style = _style(str(kind).removeprefix("Token").lstrip("."))
        first, *rest = value.split("\n")
        line.append((style, first))
        for one in rest:
            yield line
            line = [(style, one)]
    yield line


def _style(kind: str) -> str:
    while kind and kind not in _STYLES:
        kind = kind.rpartition(".")[0]
    return _STYLES.get(kind, "")
