"""Checks of the headers that people configure for a service."""

from __future__ import annotations

import re
from collections.abc import Collection

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[ -~]*")
_KEYS = frozenset({"authorization", "api-key", "x-api-key", "cookie", "proxy-authorization"})
_FRAMES = frozenset(
    {"host", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding", "upgrade"}
    | {"accept", "accept-encoding", "te", "trailer", "expect"}
)


def checked_headers(headers: dict[str, str], *, reserved: Collection[str] = ()) -> dict[str, str]:
    """Return the headers if they can be sent with each request, as a validator of a setting.

    Args:
        headers: by name.
        reserved: further names, in lower case, that have settings of their own.

    Raises:
        ValueError: a header carries a key, frames the request, is reserved, or is not a header of one line.

    Example:
        >>> checked_headers({"X-Title": "our team"})
        {'X-Title': 'our team'}
        >>> checked_headers({"X-Api-Key": "sk-1"})
        Traceback (most recent call last):
            ...
        ValueError: `X-Api-Key` can't be set here; a key belongs into the store of secrets
    """
    for name, value in headers.items():
        lowered = name.lower()
        if lowered in _KEYS:
            raise ValueError(f"`{name}` can't be set here; a key belongs into the store of secrets")
        if lowered in _FRAMES or lowered in reserved:
            raise ValueError(f"`{name}` can't be set here; the provider sets it itself")
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise ValueError(f"`{name}` is not a header of one line")
    return headers
