"""A failed model call as the classification and the reset hints read it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

from attrs import field, frozen

# Servers escape what is no ASCII; some put an escaped answer of another server into their own.
_ESCAPED = re.compile(r"\\{1,4}u([0-9a-fA-F]{4})")
_ESCAPED_QUOTE = re.compile(r'\\{1,8}"')
_INSIDE = re.compile(r'"(?:status_?code|http_?status|status|code)"\s{0,4}:\s{0,4}"?([1-5][0-9]{2})(?![0-9.])')
_LONGEST = 8_000


@frozen
class FailedCall:
    """What is known about a failed call, whatever was in the data that told of it.

    Attributes:
        code: of the error.
        status: the HTTP status; where there is none, or it is one of success, the one that stands in the answer.
        text: what was said, escapes resolved.
        lowered: the same in lower case.
        headers: by name, in lower case.
        cause: the name of an exception class.
        hint: that of the error.
    """

    code: str
    status: int | None
    text: str = field(repr=False)
    lowered: str = field(repr=False)
    headers: Mapping[str, str]
    cause: str
    hint: str

    @classmethod
    def read(cls, error: Mapping[str, Any]) -> Self:
        """Read the data of an error. Whatever is not as expected counts as absent."""
        text = f"{_text(error, 'body')}\n{_text(error, 'message')}"
        text = _ESCAPED_QUOTE.sub('"', _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text[:_LONGEST]))
        headers = error.get("headers")
        return cls(
            code=_text(error, "code"),
            status=_status(error.get("status"), text),
            text=text,
            lowered=text.lower(),
            headers={str(name).lower(): str(value) for name, value in headers.items()}
            if isinstance(headers, Mapping)
            else {},
            cause=_text(error, "cause"),
            hint=_text(error, "hint"),
        )

    def has(self, phrases: Iterable[str]) -> bool:
        """Whether one of these was said."""
        return any(phrase in self.lowered for phrase in phrases)


def _text(error: Mapping[str, Any], name: str) -> str:
    value = error.get(name)
    return value if isinstance(value, str) else ""


def _status(told: Any, text: str) -> int | None:
    status = told if isinstance(told, int) and not isinstance(told, bool) and 100 <= told <= 599 else None
    if status is not None and status >= 300:
        return status
    inside = _INSIDE.search(text)
    return int(inside[1]) if inside and int(inside[1]) >= 400 else status
