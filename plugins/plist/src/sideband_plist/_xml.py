"""Reads property lists in XML, strictly: the elements that there are, where they may be."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from datetime import UTC, datetime
from typing import Any
from xml.parsers import expat

from attrs import define, field

from ._budget import Budget
from ._errors import PlistRefused, PlistSyntax
from ._values import check_object, date_value, integer_value, real_value

__all__ = ["read_xml"]

_CONTAINERS = ("array", "dict")
_LEAVES = ("data", "date", "false", "integer", "key", "real", "string", "true")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z\Z", re.ASCII)
_INTEGER = re.compile(r"[+-]?(\d{1,20}|0[xX][0-9a-fA-F]{1,16})\Z", re.ASCII)
_REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?\Z", re.ASCII)
_LONGEST_NUMBER = 400


def read_xml(data: bytes, budget: Budget, *, typed: bool, encoding: str | None = None) -> Any:
    """The value of a property list.

    Args:
        data: the document.
        budget: what it may take.
        typed: whether dates say that they are dates.
        encoding: what it is encoded in, whatever it says itself.

    Raises:
        PlistSyntax: it is none.
        PlistRefused: it declares something.
        PlistTooLarge: it is over the budget.
        PlistValue: it holds what JSON can't carry.
    """
    reader = _Reader(budget, typed)
    parser = expat.ParserCreate(encoding)
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _check_doctype
    parser.StartElementHandler = reader.begin
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise PlistSyntax(f"line {error.lineno}, column {error.offset}: {expat.ErrorString(error.code)}") from None
    except (LookupError, UnicodeError):
        raise PlistSyntax("it names an encoding that is none") from None
    return reader.result()


def _check_doctype(_name: str, _system: str | None, _public: str | None, has_subset: bool | int) -> None:
    # without a subset there is no declaration; what a document names outside of itself is never read
    if has_subset:
        raise PlistRefused("it declares elements or entities of its own")


@define(eq=False)
class _Open:
    """A list or an object that is being read."""

    value: list[Any] | dict[str, Any]
    key: str | None = None


@define(eq=False)
class _Reader:
    """What the parser tells becomes values."""

    _budget: Budget
    _typed: bool
    _open: list[_Open] = field(factory=list, init=False)
    _found: list[Any] = field(factory=list, init=False)
    _is_plist: bool = field(default=False, init=False)
    _leaf: str | None = field(default=None, init=False)
    _text: list[str] = field(factory=list, init=False)

    def begin(self, element: str, _attributes: dict[str, str]) -> None:
        if self._leaf is not None:
            raise PlistSyntax(f"`{self._leaf}` holds an element")
        if not self._is_plist:
            if element != "plist":
                raise PlistSyntax("it does not begin with `plist`")
            self._is_plist = True
            return
        if element in _LEAVES:
            self._leaf, self._text = element, []
        elif element in _CONTAINERS:
            self._budget.value(len(self._open) + 1)
            value: list[Any] | dict[str, Any] = [] if element == "array" else {}
            self._add(value)
            self._open.append(_Open(value))
        else:
            raise PlistSyntax("it holds an element that no property list has")

    def text(self, text: str) -> None:
        if self._leaf is None:
            if text.strip():
                raise PlistSyntax("there is text between its elements")
            return
        # it stands in the document, which is as long as it may be
        self._text.append(text)

    def end(self, element: str) -> None:
        if self._leaf is not None:
            leaf, text = self._leaf, "".join(self._text)
            self._leaf = None
            if leaf == "key":
                self._set_key(text)
                return
            self._budget.value(len(self._open) + 1)
            self._add(_leaf_value(leaf, text, typed=self._typed))
        elif element in _CONTAINERS:
            ended = self._open.pop()
            if ended.key is not None:
                raise PlistSyntax("a key has no value")
            if isinstance(ended.value, dict):
                check_object(ended.value)

    def result(self) -> Any:
        """The one value."""
        if len(self._found) != 1:
            raise PlistSyntax(f"it holds {len(self._found)} values, not one")
        return self._found[0]

    def _set_key(self, key: str) -> None:
        inner = self._open[-1] if self._open else None
        if inner is None or not isinstance(inner.value, dict):
            raise PlistSyntax("a key stands outside of an object")
        if inner.key is not None:
            raise PlistSyntax("a key has no value")
        if key in inner.value:
            raise PlistSyntax("an object has the same key twice")
        inner.key = key

    def _add(self, value: Any) -> None:
        if not self._open:
            self._found.append(value)
            return
        inner = self._open[-1]
        if isinstance(inner.value, list):
            inner.value.append(value)
        elif inner.key is None:
            raise PlistSyntax("a value of an object has no key")
        else:
            inner.value[inner.key] = value
            inner.key = None


def _leaf_value(leaf: str, text: str, *, typed: bool) -> Any:
    if leaf == "string":
        return text
    if leaf == "data":
        return _data(text)
    stripped = text.strip()
    if leaf in ("true", "false"):
        if stripped:
            raise PlistSyntax(f"`{leaf}` holds text")
        return leaf == "true"
    if leaf == "integer":
        if not _INTEGER.match(stripped):
            raise PlistSyntax("an `integer` is no whole number of 64 bits")
        digits = stripped.lstrip("+-")
        number = int(digits, 16) if digits[:2].lower() == "0x" else int(digits)
        return integer_value(-number if stripped.startswith("-") else number)
    if leaf == "real":
        return _real(stripped)
    return _date(stripped, typed=typed)


def _data(text: str) -> bytes:
    try:
        return b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise PlistSyntax("`data` is not base64") from None


def _real(text: str) -> float:
    if text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return real_value(float(text))
    if len(text) > _LONGEST_NUMBER or not _REAL.match(text):
        raise PlistSyntax("a `real` is no number")
    return real_value(float(text))


def _date(text: str, *, typed: bool) -> Any:
    found = _DATE.match(text)
    try:
        moment = datetime(*map(int, found.groups()), tzinfo=UTC) if found else None  # type: ignore[arg-type,misc]
    except ValueError:
        moment = None
    if moment is None:
        raise PlistSyntax("a `date` is no moment such as 2001-01-01T00:00:00Z")
    return date_value(moment, typed=typed)
