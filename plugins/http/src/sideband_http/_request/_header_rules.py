"""Which headers and cookies a skill may set, and in which form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .._errors import HeaderRefused

_MOST = 100
_LARGEST = 32_768

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_VALUE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?\Z")
_COOKIE_VALUE = re.compile(r"[!#-+\--:<-\[\]-~]*\Z")

# How a message is framed and where it goes is the client's business, or requests could be smuggled. Programs behind a
# gateway are told `x_a` and `x-a` as the same (`HTTP_X_A`), so that both are meant here.
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


def check_headers(headers: Mapping[str, str], *, attached: Iterable[str] = ()) -> dict[str, str]:
    """The headers with lower-case names, if a skill may set all of them.

    Args:
        headers: as the skill wrote them.
        attached: lower-case names of the headers that a credential supplies, which a skill may then not touch.

    Raises:
        HeaderRefused: one is reserved, malformed, given twice, or there are too many.
    """
    taken = frozenset(map(_same, attached))
    checked: dict[str, str] = {}
    for name, value in headers.items():
        lower = name.lower()
        _check_form(name, value)
        if _is_the_clients(lower):
            raise HeaderRefused(name, "is set by the client itself")
        if _same(lower) in {"cookie", "cookie2"}:
            raise HeaderRefused(name, "is built from cookies", hint="pass `cookies`")
        if _same(lower) in taken:
            raise HeaderRefused(name, "is set by the credential", hint="leave out either it or `auth`")
        if lower in checked:
            raise HeaderRefused(name, "is given twice")
        checked[lower] = value
    if len(checked) > _MOST or sum(len(name) + len(value) for name, value in checked.items()) > _LARGEST:
        raise HeaderRefused("*", f"and its like are more than {_MOST} or longer than {_LARGEST:,} bytes together")
    return checked


def check_credential_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a credential with lower-case names. Messages never hold a value."""
    for name, value in headers.items():
        _check_form(name, value)
        if _is_the_clients(name.lower()):
            raise HeaderRefused(name, "is set by the client itself", hint="store the credential with another header")
    return {name.lower(): value for name, value in headers.items()}


def _same(name: str) -> str:
    return name.replace("_", "-")


def _is_the_clients(name: str) -> bool:
    return _same(name) in _FRAMING or _same(name).startswith("proxy-")


def _check_form(name: str, value: str) -> None:
    if not _TOKEN.match(name):
        raise HeaderRefused(name, "has a name that is no header name")
    if not _VALUE.match(value):
        raise HeaderRefused(
            name, "has a value with a line break, a control character, a space at its end or a letter beyond ASCII"
        )


def check_cookies(cookies: Mapping[str, str]) -> dict[str, str]:
    """The cookies, if each can be sent as one and means what it says.

    Raises:
        HeaderRefused: a name or value has a character that would end it, or there are too many.
    """
    for name, value in cookies.items():
        if not _TOKEN.match(name) or not _COOKIE_VALUE.match(value):
            raise HeaderRefused(f"Cookie: {name}", "can't be sent", hint="percent-encode its value")
    if len(cookies) > _MOST or sum(len(name) + len(value) for name, value in cookies.items()) > _LARGEST:
        raise HeaderRefused("Cookie", f"has more than {_MOST} cookies or {_LARGEST:,} bytes")
    return dict(cookies)
