"""Parse the error of a failed model call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

from attrs import field, frozen

# Servers escape non-ASCII characters; some embed an escaped response of another server in their own.
_ESCAPED = re.compile(r"\\{1,4}u([0-9a-fA-F]{4})")
_ESCAPED_QUOTE = re.compile(r'\\{1,8}"')
_INSIDE = re.compile(r'"(?:status_?code|http_?status|status|code)"\s{0,4}:\s{0,4}"?([1-5][0-9]{2})(?![0-9.])')
_LONGEST = 8_000


@frozen
class FailedCall:
    """The parsed error of a failed call. The data may have any content.

    Attributes:
        code: the code of the error.
        status: the HTTP status; if it is missing or a status of success, the status in the body.
        text: the body and the message, with escapes resolved.
        lowered: the text in lower case.
        headers: the headers of the response by lower-case name.
        cause: the name of an exception class.
        hint: the hint of the error.
        is_final: whether the response arrived whole but can never be read, so that a retry would only be paid for.
    """

    code: str
    status: int | None
    text: str = field(repr=False)
    lowered: str = field(repr=False)
    headers: Mapping[str, str]
    cause: str
    hint: str
    is_final: bool = False

    @classmethod
    def read(cls, error: Mapping[str, Any]) -> Self:
        """Parse the data of an error. Invalid values count as missing."""
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
            is_final=_text(error, "code") == "provider.stream" and error.get("retryable") is False,
        )

    def has(self, phrases: Iterable[str]) -> bool:
        """Return whether the text contains one of these phrases."""
        return any(phrase in self.lowered for phrase in phrases)


def _text(error: Mapping[str, Any], name: str) -> str:
    value = error.get(name)
    return value if isinstance(value, str) else ""


def _status(given: Any, text: str) -> int | None:
    status = given if isinstance(given, int) and not isinstance(given, bool) and 100 <= given <= 599 else None
    if status is not None and status >= 300:
        return status
    inside = _INSIDE.search(text)
    return int(inside[1]) if inside and int(inside[1]) >= 400 else status
