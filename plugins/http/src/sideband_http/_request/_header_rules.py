"""Validation of headers and cookies set by skills."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .._errors import HeaderRefused
from .._models import UNSUPPORTED_METHODS

_MAX_COUNT = 100
_MAX_BYTES = 32_768

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_VALUE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?\Z")
_COOKIE_VALUE = re.compile(r"[!#-+\--:<-\[\]-~]*\Z")

# Only the client may set the headers that control framing and routing; otherwise requests could be smuggled. Gateways
# pass `x_a` and `x-a` under the same name (`HTTP_X_A`), so both spellings are rejected.
_FRAMING = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)

# Servers take the method from these headers, and the requested part of the body from those.
_METHODS = frozenset({"x-http-method", "x-http-method-override", "x-method-override"})
_RANGES = frozenset({"request-range", "x-ms-range"})


def check_headers(headers: Mapping[str, str], *, attached: Iterable[str] = ()) -> dict[str, str]:
    """Check the headers set by a skill, and return them with lower-case names.

    Args:
        headers: the headers from the skill.
        attached: the lower-case names of the headers that the credential sets, which a skill may not override.

    Raises:
        HeaderRefused: if a header is reserved, malformed or duplicated, or there are too many.
    """
    attached_names = frozenset(map(_normalized, attached))
    checked: dict[str, str] = {}
    for name, value in headers.items():
        lower = name.lower()
        _check_form(name, value)
        if _is_reserved(lower):
            raise HeaderRefused(name, "is reserved for the client")
        if _normalized(lower) in {"cookie", "cookie2"}:
            raise HeaderRefused(name, "cannot be set directly", hint="pass `cookies`")
        if _normalized(lower) in attached_names:
            raise HeaderRefused(name, "is set by the credential", hint="remove either the header or `auth`")
        if _normalized(lower) in _METHODS and value.strip().upper() in UNSUPPORTED_METHODS:
            raise HeaderRefused(name, "names an unsupported HTTP method", hint="remove it")
        if _normalized(lower) in _RANGES:
            raise HeaderRefused(name, "is not supported", hint="use the header `Range`")
        if lower in checked:
            raise HeaderRefused(name, "is duplicated")
        checked[lower] = value
    if len(checked) > _MAX_COUNT or sum(len(name) + len(value) for name, value in checked.items()) > _MAX_BYTES:
        raise HeaderRefused("*", f"exceeds the limit of {_MAX_COUNT} headers or {_MAX_BYTES:,} bytes in total")
    return checked


def check_credential_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Check the headers of a credential, and return them with lower-case names. Errors never contain a value."""
    for name, value in headers.items():
        _check_form(name, value)
        if _is_reserved(name.lower()):
            raise HeaderRefused(name, "is reserved for the client", hint="store the credential with another header")
    return {name.lower(): value for name, value in headers.items()}


def _normalized(name: str) -> str:
    return name.replace("_", "-")


def _is_reserved(name: str) -> bool:
    return _normalized(name) in _FRAMING or _normalized(name).startswith("proxy-")


def _check_form(name: str, value: str) -> None:
    if not _TOKEN.match(name):
        raise HeaderRefused(name, "has an invalid name")
    if not _VALUE.match(value):
        raise HeaderRefused(
            name, "has an invalid value: expected printable ASCII on one line without surrounding spaces"
        )


def check_cookies(cookies: Mapping[str, str]) -> dict[str, str]:
    """Check and return cookies.

    Raises:
        HeaderRefused: if a name or value contains a character that is not allowed, or there are too many.
    """
    for name, value in cookies.items():
        if not _TOKEN.match(name) or not _COOKIE_VALUE.match(value):
            raise HeaderRefused(f"Cookie: {name}", "has an invalid name or value", hint="percent-encode the value")
    if len(cookies) > _MAX_COUNT or sum(len(name) + len(value) for name, value in cookies.items()) > _MAX_BYTES:
        raise HeaderRefused("Cookie", f"exceeds {_MAX_COUNT} cookies or {_MAX_BYTES:,} bytes")
    return dict(cookies)
