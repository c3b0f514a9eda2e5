"""Validation of configured request headers."""

from __future__ import annotations

import re
from collections.abc import Collection

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[ -~]*")
_KEYS = frozenset({"authorization", "api-key", "x-api-key", "cookie", "proxy-authorization"})
_RESERVED = frozenset(
    {"host", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding", "upgrade"}
    | {"accept", "accept-encoding", "te", "trailer", "expect"}
)


def checked_headers(headers: dict[str, str], *, reserved: Collection[str] = ()) -> dict[str, str]:
    """Validate headers that are sent with each request, and return them unchanged. Use it as a settings validator.

    Args:
        headers: the headers by name.
        reserved: further forbidden names, in lower case, such as those with a setting of their own.

    Raises:
        ValueError: if a header carries a key, controls message framing, is reserved, or is malformed.

    Example:
        >>> checked_headers({"X-Title": "our team"})
        {'X-Title': 'our team'}
        >>> checked_headers({"X-Api-Key": "sk-1"})
        Traceback (most recent call last):
            ...
        ValueError: cannot set header `X-Api-Key`; keys belong in the secret store
    """
    for name, value in headers.items():
        lowered = name.lower()
        if lowered in _KEYS:
            raise ValueError(f"cannot set header `{name}`; keys belong in the secret store")
        if lowered in _RESERVED or lowered in reserved:
            raise ValueError(f"cannot set header `{name}`; the provider sets it")
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise ValueError(f"invalid header `{name}`; expected a token and one line of printable ASCII")
    return headers
