"""From plain data to a property list. The standard library writes it, once it is known to be one."""

from __future__ import annotations

import plistlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from attrs import define, field

from ._budget import PlistBudget, Pulse
from ._config import Config
from ._errors import PlistTooLarge, PlistValue
from ._values import DATE, UID, integer_value, real_value

_FORMS = {"xml": plistlib.FMT_XML, "binary": plistlib.FMT_BINARY}
# what XML can't hold, whichever way it is written
_NOT_IN_XML = {*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF}


def write(value: Any, form: str, config: Config, pulse: Pulse) -> bytes:
    """The property list.

    Args:
        value: plain data.
        form: `xml` or `binary`.
        config: the limits.
        pulse: called now and then; raises if the result is not waited for any more.

    Raises:
        PlistValue: it holds what a property list does not have.
        PlistTooLarge: it is over the limits.
    """
    values = _PlistValues(PlistBudget(config, pulse), in_xml=form == "xml").convert(value, 1)
    written = plistlib.dumps(values, fmt=_FORMS[form], sort_keys=False)
    if len(written) > config.max_bytes:
        raise PlistTooLarge(f"as a document it has more than {config.max_bytes:,} bytes")
    return written


@define(eq=False)
class _PlistValues:
    """Makes of plain data what the library writes."""

    _budget: PlistBudget
    in_xml: bool = field(kw_only=True)

    def convert(self, value: Any, depth: int) -> Any:
        self._budget.values(1)
        self._budget.depth(depth)
        if isinstance(value, dict):
            return self._object(value, depth)
        if isinstance(value, list):
            return [self.convert(one, depth + 1) for one in value]
        return self._leaf(value)

    def _leaf(self, value: Any) -> Any:
        match value:
            case bool():
                return value
            case int():
                return integer_value(value)
            case float():
                return real_value(value)
            case str():
                return self._text(value)
            case bytes():
                self._budget.size(len(value))
                return value
            case _:
                what = "null" if value is None else f"value of the type {type(value).__name__}"
                raise PlistValue(f"a property list has no {what}", hint="leave it out, or write it as text")

    def _object(self, value: dict[Any, Any], depth: int) -> Any:
        if len(value) == 1:
            ((key, inner),) = value.items()
            if key in _SPECIAL:
                return _SPECIAL[key](inner)
        return {self._text(key): self.convert(inner, depth + 1) for key, inner in value.items()}

    def _text(self, text: Any) -> str:
        if not isinstance(text, str):
            raise PlistValue("a key is no text", hint="write numbers that are keys as text")
        self._budget.size(len(text))
        if self.in_xml and any(ord(character) in _NOT_IN_XML for character in text):
            raise PlistValue("a text holds a control character, which XML can't", hint='use `form="binary"`')
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise PlistValue("a text is not valid Unicode", hint="give it as bytes") from None
        return text


def _date(text: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC).replace(tzinfo=None, microsecond=0) if moment.tzinfo else _no_zone()
    except (TypeError, ValueError, OverflowError):
        raise PlistValue(f"`{DATE}` is no moment", hint="write it with its zone: 2001-01-01T00:00:00Z") from None


def _no_zone() -> datetime:
    raise ValueError


def _uid(number: Any) -> plistlib.UID:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 1 << 64:
        raise PlistValue(f"`{UID}` is no whole number of 64 bits", hint="it counts the objects of an archive")
    return plistlib.UID(number)


_SPECIAL: dict[Any, Callable[[Any], Any]] = {DATE: _date, UID: _uid}
