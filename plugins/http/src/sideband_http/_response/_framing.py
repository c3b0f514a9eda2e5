"""Whether an answer says in one way only where it ends. What readers disagree on, attackers use."""

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
_ABOUT_THE_CONNECTION = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})


def framing_problem(response: httpx.Response) -> str | None:
    """What is wrong with the header of a response, or ``None``.

    Libraries are lenient with servers, each in other places. Here every one is as strict as the standard (RFC 9112).

    Example:
        >>> import httpx
        >>> framing_problem(httpx.Response(200, headers=[("content-length", "5"), ("transfer-encoding", "chunked")]))
        'it has both a length and chunks'
    """
    if response.http_version not in _VERSIONS:
        return "its version is not one of HTTP"
    if not 200 <= response.status_code <= 999:
        return "its status is none, or it speaks another protocol from now on"
    name_form = _LOWER_NAME if response.http_version == "HTTP/2" else _NAME
    for name, value in response.headers.raw:
        if not name_form.match(name) or _CONTROL.search(value):
            return "a header has a name that is none, or a control character"
        if response.http_version == "HTTP/2" and name in _ABOUT_THE_CONNECTION:
            return "it has a header that HTTP/2 does not know"
    return _length_problem(response)


def _length_problem(response: httpx.Response) -> str | None:
    codings = [one.lower() for one in response.headers.get_list("transfer-encoding")]
    lengths = set(response.headers.get_list("content-length", split_commas=True))
    if codings and lengths:
        return "it has both a length and chunks"
    if codings and codings != ["chunked"]:
        return "it is encoded for transfer in an unknown way"
    if len(lengths) > 1 or not all(_LENGTH.match(one) for one in lengths):
        return "its length is no number, or several"
    return None
