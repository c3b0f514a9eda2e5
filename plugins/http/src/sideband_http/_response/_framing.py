"""Checks that the framing of a response is unambiguous. Attackers exploit differences between parsers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

_VERSIONS = frozenset({"HTTP/1.0", "HTTP/1.1", "HTTP/2"})
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_LOWER_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+\Z")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_LENGTH = re.compile(r"[0-9]{1,19}\Z")
_CONNECTION_HEADERS = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})


def framing_problem(response: httpx.Response) -> str | None:
    """Return a description of the first problem in the header of a response, or ``None``.

    HTTP libraries are lenient in different ways. This check is as strict as the standard (RFC 9112).

    Example:
        >>> import httpx
        >>> framing_problem(httpx.Response(200, headers=[("content-length", "5"), ("transfer-encoding", "chunked")]))
        'the response has both Content-Length and Transfer-Encoding'
    """
    if response.http_version not in _VERSIONS:
        return "unsupported HTTP version"
    if not 200 <= response.status_code <= 999:
        return "invalid status, or an unexpected switch of protocols"
    name_form = _LOWER_NAME if response.http_version == "HTTP/2" else _NAME
    for name, value in response.headers.raw:
        if not name_form.match(name) or _CONTROL.search(value):
            return "invalid header name, or a control character in a header"
        if response.http_version == "HTTP/2" and name in _CONNECTION_HEADERS:
            return "a connection header that HTTP/2 does not allow"
    return _length_problem(response)


def _length_problem(response: httpx.Response) -> str | None:
    codings = [one.lower() for one in response.headers.get_list("transfer-encoding")]
    lengths = set(response.headers.get_list("content-length", split_commas=True))
    if codings and lengths:
        return "the response has both Content-Length and Transfer-Encoding"
    if codings and codings != ["chunked"]:
        return "unsupported Transfer-Encoding"
    if len(lengths) > 1 or not all(_LENGTH.match(one) for one in lengths):
        return "invalid or conflicting Content-Length"
    return None
