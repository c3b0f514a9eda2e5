"""Parser for literals in Python's syntax. ``ast`` is not used: deeply nested input can crash the interpreter."""

from __future__ import annotations

import re
from typing import Any

from attrs import define

from ._calls import UnusableCall

_MAX_DEPTH = 64

_SPACE = re.compile(r"\s*+")
_NAME = re.compile(r"[A-Za-z_][\w.]{0,127}+(?!\w)")
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]{0,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][-+]?\d{1,9})?(?![\w.])")
_QUOTE = re.compile("'''|\"\"\"|'|\"")
_STRING_STOPS = {quote: re.compile(rf"\\|{quote}") for quote in ("'''", '"""', "'", '"')}
_CODE_POINT = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "\n": ""}
_ESCAPES |= {"\\": "\\", "'": "'", '"': '"'}
_CONSTANTS = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}
_LAST_CODE_POINT = 0x10FFFF


def parse_literal(text: str) -> Any:
    """Return the value of a literal.

    Raises:
        UnusableCall: if the text is not exactly one literal.

    Example:
        >>> parse_literal("{'a': [1, None]}")
        {'a': [1, None]}
    """
    reader = LiteralReader(text)
    value = reader.value()
    reader.skip_space()
    if reader.position < len(text):
        raise UnusableCall
    return value


@define
class LiteralReader:
    """Reads literals from a text. Each method raises ``UnusableCall`` if there is something else.

    Attributes:
        text: the text.
        position: where to read next.
    """

    text: str
    position: int = 0

    def skip_space(self) -> None:
        """Skip whitespace."""
        self._take(_SPACE)

    def take(self, token: str) -> bool:
        """Skip whitespace and the token, and return whether it was there."""
        self.skip_space()
        found = self.text.startswith(token, self.position)
        self.position += len(token) if found else 0
        return found

    def expect(self, token: str) -> None:
        """Skip whitespace and the token."""
        if not self.take(token):
            raise UnusableCall

    def name(self) -> str:
        """Read a name, which may have dots."""
        self.skip_space()
        if (name := self._take(_NAME)) is None:
            raise UnusableCall
        return name[0]

    def value(self, depth: int = 0) -> Any:
        """Read a string, a number, a constant, a list, a tuple or a dictionary."""
        if depth > _MAX_DEPTH:
            raise UnusableCall
        self.skip_space()
        if quote := self._take(_QUOTE):
            return self._string(quote[0])
        if number := self._take(_NUMBER):
            return _number(number[0])
        for opening, closing in (("[", "]"), ("(", ")")):
            if self.take(opening):
                return self._list(closing, depth)
        if self.take("{"):
            return self._dictionary(depth)
        name = self.name()
        if name not in _CONSTANTS:
            raise UnusableCall
        return _CONSTANTS[name]

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        if (match := pattern.match(self.text, self.position)) is not None:
            self.position = match.end()
        return match

    def _list(self, closing: str, depth: int) -> list[Any]:
        items = list[Any]()
        while not self.take(closing):
            items.append(self.value(depth + 1))
            if not self.take(","):
                self.expect(closing)
                break
        return items

    def _dictionary(self, depth: int) -> dict[str, Any]:
        items = dict[str, Any]()
        while not self.take("}"):
            key = self.value(depth + 1)
            self.expect(":")
            if not isinstance(key, str) or key in items:
                raise UnusableCall
            items[key] = self.value(depth + 1)
            if not self.take(","):
                self.expect("}")
                break
        return items

    def _string(self, quote: str) -> str:
        pieces = list[str]()
        while (stop := _STRING_STOPS[quote].search(self.text, self.position)) is not None:
            pieces.append(self.text[self.position : stop.start()])
            self.position = stop.end()
            if stop[0] == quote:
                return "".join(pieces)
            pieces.append(self._escape())
        raise UnusableCall

    def _escape(self) -> str:
        if code := self._take(_CODE_POINT):
            digits = code[1] or code[2] or code[3]
            point = int(digits, 16) if digits else int(code[4], 8)
            if point > _LAST_CODE_POINT:
                raise UnusableCall
            return chr(point)
        character = self.text[self.position : self.position + 1]
        self.position += 1
        return _ESCAPES.get(character, f"\\{character}")


def _number(text: str) -> int | float:
    try:
        return float(text) if {".", "e", "E"} & set(text) else int(text)
    except ValueError:
        raise UnusableCall from None
