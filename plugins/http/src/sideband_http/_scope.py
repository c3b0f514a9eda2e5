"""What capabilities of this family can limit."""

from __future__ import annotations

import attrs
from sideband.ops import Scope

from ._url import Target

__all__ = ["HttpScope", "scope_of"]


@attrs.frozen
class HttpScope(Scope, family="http"):
    """The fields of an ``http`` capability. All are of the normalised request, which is the one that is sent.

    Args:
        scheme: ``http`` or ``https``.
        host: lower-case ASCII (international names as ``xn--…``), an IPv6 address without brackets.
        port: always filled in: ``443`` for ``https`` without one.
        method: upper-case.
        path: without dot segments. Percent-encoding is undone except for characters that mean something in a URL.
        file: where a download is written, relative to the folder for files; only ``http.download`` has it.
    """

    scheme: str | None = None
    host: str | None = None
    port: str | None = None
    method: str | None = None
    path: str | None = None
    file: str | None = None


def scope_of(target: Target, method: str, *, file: str | None = None) -> HttpScope:
    """What a request needs to be granted."""
    return HttpScope(
        scheme=target.scheme,
        host=target.host,
        port=str(target.port),
        method=method,
        path=target.readable_path,
        file=file,
    )
