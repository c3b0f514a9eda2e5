"""Writes plain data as a property list, using the standard library after validation."""

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
# characters that XML does not support, not even as references
_NOT_IN_XML = {*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF}


def write(value: Any, form: str, config: Config, pulse: Pulse) -> bytes:
    """Return the property list as a document.

    Args:
        value: plain data.
        form: `xml` or `binary`.
        config: the limits.
        pulse: called regularly; raises an exception to stop writing when the call is cancelled.

    Raises:
        PlistValue: if it contains values that property lists do not support.
        PlistTooLarge: if it exceeds the limits.
    """
    values = _PlistValues(PlistBudget(config, pulse), in_xml=form == "xml").convert(value, 1)
    written = plistlib.dumps(values, fmt=_FORMS[form], sort_keys=False)
    if len(written) > config.max_bytes:
        raise PlistTooLarge(f"the written document exceeds {config.max_bytes:,} bytes")
    return written


@define(eq=False)
class _PlistValues:
    """Converts plain data to the types of the library."""

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
                kind = "null" if value is None else f"values of type {type(value).__name__}"
                raise PlistValue(f"property lists do not support {kind}", hint="remove it, or write it as text")

    def _object(self, value: dict[Any, Any], depth: int) -> Any:
        if len(value) == 1:
            ((key, inner),) = value.items()
            if key in _SPECIAL:
                return _SPECIAL[key](inner)
        return {self._text(key): self.convert(inner, depth + 1) for key, inner in value.items()}

    def _text(self, text: Any) -> str:
        if not isinstance(text, str):
            raise PlistValue("key is not text", hint="convert it to text")
        self._budget.size(len(text))
        if self.in_xml and any(ord(character) in _NOT_IN_XML for character in text):
            raise PlistValue("text contains a character that XML does not support", hint="set `form` to `binary`")
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise PlistValue("text is not valid Unicode", hint="pass it as bytes") from None
        return text


def _date(text: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC).replace(tzinfo=None, microsecond=0) if moment.tzinfo else _raise_no_zone()
    except (TypeError, ValueError, OverflowError):
        raise PlistValue(f"invalid `{DATE}`", hint="write it with its time zone: 2001-01-01T00:00:00Z") from None


def _raise_no_zone() -> datetime:
    raise ValueError


def _uid(number: Any) -> plistlib.UID:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 1 << 64:
        raise PlistValue(f"`{UID}` must be an unsigned 64-bit integer", hint="pass the index of an object")
    return plistlib.UID(number)


_SPECIAL: dict[Any, Callable[[Any], Any]] = {DATE: _date, UID: _uid}
