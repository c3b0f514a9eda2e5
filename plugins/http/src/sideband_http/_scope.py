"""What capabilities of this family can limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs
from sideband.ops import Scope

from ._addresses._classes import AddressClass, network_of
from ._addresses._url import RequestTarget


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
        network: the class of the address that is connected to: ``public``, ``private``, ``link-local``, ``loopback``
            or ``metadata``. A capability without it means ``public``, or, if all its hosts are written as addresses
            (or ``localhost``), what these are. What a name resolves to is compared once it is resolved.
    """

    known_later: ClassVar[tuple[str, ...]] = ("network",)

    scheme: str | None = None
    host: str | None = None
    port: str | None = None
    method: str | None = None
    path: str | None = None
    file: str | None = None
    network: str | None = None

    @classmethod
    def complete(cls, fields: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
        """The networks of a capability that names none. Whoever names an address means it; a name may lead anywhere."""
        found = [network_of(host) for host in fields.get("host", ("*",))]
        known = tuple(sorted({one.value for one in found if one is not None}))
        return {"network": known if None not in found else (AddressClass.PUBLIC.value,)}


def scope_of(
    target: RequestTarget, method: str, *, file: str | None = None, network: AddressClass | None = None
) -> HttpScope:
    """What a request needs to be granted.

    Args:
        target: where it goes.
        method: upper-case.
        file: where its answer is written.
        network: what its host resolved to; only needed for names.
    """
    network = network_of(target.host) if network is None else network
    return HttpScope(
        scheme=target.scheme,
        host=target.host,
        port=str(target.port),
        method=method,
        path=target.readable_path,
        file=file,
        network=None if network is None else network.value,
    )
