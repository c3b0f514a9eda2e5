"""The scope of an ``http`` capability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs
from sideband.ops import Scope

from ._addresses._classes import AddressClass, network_of
from ._addresses._url import RequestTarget


@attrs.frozen
class HttpScope(Scope, family="http"):
    """The fields of an ``http`` capability. They refer to the normalized request, which is the one that is sent.

    Args:
        scheme: ``http`` or ``https``.
        host: the host in lower-case ASCII (international names as ``xn--…``); an IPv6 address has no brackets.
        port: the port, which is always set: ``443`` for an ``https`` URL without one.
        method: the method in upper case.
        path: the path without dot segments, percent-decoded except for characters with a special meaning.
        file: the path of a download, relative to the folder for files; set for ``http.download`` only.
        network: the class of the address: ``public``, ``private``, ``link-local``, ``loopback`` or ``metadata``. A
            capability without it covers ``public``; if all its hosts are IP addresses or ``localhost``, it covers the
            classes of these. The address of a name is compared after the lookup.
    """

    known_later: ClassVar[tuple[str, ...]] = ("network",)
    valid_values: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "scheme": ("http", "https"),
        "network": tuple(one.value for one in AddressClass),
    }

    scheme: str | None = None
    host: str | None = None
    port: str | None = None
    method: str | None = None
    path: str | None = None
    file: str | None = None
    network: str | None = None

    @classmethod
    def complete(cls, fields: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
        """Return the networks of a capability that does not set them: those of its addresses, or ``public``."""
        found = [network_of(host) for host in fields.get("host", ("*",))]
        known = tuple(sorted({one.value for one in found if one is not None}))
        return {"network": known if None not in found else (AddressClass.PUBLIC.value,)}


@attrs.frozen
class HomeFileScope(Scope, family="files"):
    """The scope that the grant must allow to write a file, independent of the package that provides ``files``.

    Args:
        path: the path of the file, relative to the host's folder for files.
    """

    path: str | None = None
    mode: str | None = "write"
    place: str | None = "home"
    hidden: str | None = "no"


@attrs.frozen
class TraceReceiverScope(Scope, family="trace"):
    """The scope that the grant must allow to pass on the trace context, independent of the package that traces.

    Args:
        host: the host that receives it, in lower-case ASCII.
        port: the port, which is always set.
        scheme: ``http`` or ``https``.
    """

    host: str | None = None
    port: str | None = None
    scheme: str | None = None


def scope_of(
    target: RequestTarget, method: str, *, file: str | None = None, network: AddressClass | None = None
) -> HttpScope:
    """Return the scope that a request needs.

    Args:
        target: the target of the request.
        method: the method in upper case.
        file: the path of a download.
        network: the class of the resolved address; required for names only.
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
