"""Parses property lists in XML strictly: only known elements, only where the format allows them."""

from __future__ import annotations

import re
from base64 import b64decode
from datetime import datetime
from typing import Any
from xml.parsers import expat

from attrs import define, field

from ._budget import PlistBudget, Pulse
from ._config import Config
from ._errors import PlistError, PlistRefused, PlistSyntax
from ._values import date_value, integer_value, object_value, real_value

_VALUES = {"array", "data", "date", "dict", "false", "integer", "real", "string", "true"}
_TEXTS = {"data", "date", "integer", "key", "real", "string"}
# the content of an element: `k` for a key, `v` for a value
_CONTENT = {"plist": re.compile("v"), "array": re.compile("v*"), "dict": re.compile("(?:kv)*")}
_EMPTY = re.compile("")
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_INTEGER = re.compile(r"[+-]?(\d{1,20}|0x[0-9a-f]{1,16})", re.ASCII | re.IGNORECASE)
_REAL = re.compile(
    r"[+-]?((\d{1,400}\.?\d{0,400}|\.\d{1,400})(e[+-]?\d{1,4})?|nan|inf(inity)?)", re.ASCII | re.IGNORECASE
)


def read_xml(data: bytes, config: Config, pulse: Pulse, *, typed: bool, encoding: str | None = None) -> Any:
    """Return the value of a property list.

    Args:
        data: the document.
        config: the limits.
        pulse: called regularly; raises an exception to stop parsing when the call is cancelled.
        typed: whether to return dates as typed objects.
        encoding: the encoding, which overrides the declared one.

    Raises:
        PlistSyntax: if it is not a valid property list.
        PlistRefused: if it contains declarations.
        PlistTooLarge: if it exceeds the limits.
        PlistValue: if it contains values that JSON does not support.
    """
    reader = _XmlReader(PlistBudget(config, pulse), typed)
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
    except PlistError:
        raise
    except (LookupError, ValueError):
        raise PlistSyntax("unsupported encoding") from None
    return reader.result


def _check_doctype(_name: str, _system: str | None, _public: str | None, has_subset: bool | int) -> None:
    # declarations occur in the internal subset only; the external one is never read
    if has_subset:
        raise PlistRefused("it declares elements or entities")


@define(eq=False)
class _OpenElement:
    """An unfinished element. A key is stored as text, like the value that follows it."""

    kinds: list[str] = field(factory=list)
    values: list[Any] = field(factory=list)
    texts: list[str] = field(factory=list)


@define(eq=False)
class _XmlReader:
    """The handlers of the parser."""

    _budget: PlistBudget
    _typed: bool
    result: Any = field(default=None, init=False)
    _open: list[_OpenElement] = field(factory=list, init=False)

    def begin(self, element: str, _attributes: dict[str, str]) -> None:
        if not self._open and element != "plist":
            raise PlistSyntax("the root element must be `plist`")
        if self._open:
            if element in _VALUES:
                self._budget.values(1)
                self._budget.depth(len(self._open))
            elif element != "key":
                raise PlistSyntax("unexpected element")
            self._open[-1].kinds.append("k" if element == "key" else "v")
        self._open.append(_OpenElement())

    def text(self, text: str) -> None:
        self._open[-1].texts.append(text)

    def end(self, element: str) -> None:
        ended = self._open.pop()
        if (ended.kinds or element in _CONTENT) and not _CONTENT.get(element, _EMPTY).fullmatch("".join(ended.kinds)):
            raise PlistSyntax(f"invalid content of `{element}`")
        text = "".join(ended.texts)
        if element not in _TEXTS and text.strip():
            raise PlistSyntax(f"unexpected text in `{element}`")
        value = self._value(element, ended.values, text)
        if self._open:
            self._open[-1].values.append(value)
        else:
            self.result = value

    def _value(self, element: str, values: list[Any], text: str) -> Any:
        match element:
            case "plist":
                return values[0]
            case "array":
                return values
            case "dict":
                return object_value(values[::2], values[1::2])
            case "true" | "false":
                return element == "true"
            case "string" | "key":
                return text
        try:
            return self._leaf(element, "".join(text.split()) if element == "data" else text.strip())
        except PlistError:
            raise
        except ValueError:
            raise PlistSyntax(f"invalid value of `{element}`") from None

    def _leaf(self, element: str, text: str) -> Any:
        if element == "data":
            return b64decode(text, validate=True)
        if element == "date":
            return date_value(datetime.fromisoformat(_matched(_DATE, text)), typed=self._typed)
        if element == "real":
            return real_value(float(_matched(_REAL, text)))
        return integer_value(int(_matched(_INTEGER, text), 16 if "x" in text.lower() else 10))


def _matched(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError
    return text
