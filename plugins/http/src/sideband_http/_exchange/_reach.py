"""Resolution of a request's host, and the check of its addresses against the grant before connecting."""

from __future__ import annotations

from sideband.ops import OpContext, OpDenied

from .._addresses._classes import FORBIDDEN, AddressClass, classify, network_of
from .._addresses._resolving import NameUnresolved
from .._addresses._url import RequestTarget
from .._errors import AddressDenied, AddressRefused, ConnectFailed
from .._request._egress import check_url
from .._scope import scope_of
from .._transport._connections import HttpConnections
from .._transport._interface import Peer

# Further addresses would be tried only if all of these failed.
_MAX_PEERS = 8


async def peers_of(
    target: RequestTarget, method: str, ctx: OpContext, connections: HttpConnections, *, file: str | None = None
) -> tuple[Peer, ...]:
    """Return the peers that a request may be sent to, the preferred one first.

    If one of a name's addresses is not granted, the request is refused: the owner of the name decides which address
    comes first, and may change it between requests.

    Raises:
        OpDenied: if the grant does not allow the request. If the URL alone decides that, the name is not resolved.
        EgressRefused: if the URL contains a secret.
        AddressRefused: if an address is of a class that is never allowed.
        ConnectFailed: if the name cannot be resolved.
    """
    known = network_of(target.host)
    _require_by_name(target, method, ctx, file, known)
    check_url(target, method, ctx)
    if known is None and (proxy := connections.proxies.for_name(target)) is not None:
        # Only the proxy knows the address; the configuration trusts it.
        ctx.require(scope_of(target, method, file=file, network=AddressClass.PUBLIC))
        return (Peer(target.host, None, proxy),)
    try:
        addresses = await connections.resolver.resolve(target.host, ctx.domain)
    except NameUnresolved as error:
        raise ConnectFailed(target.origin, str(error)) from None
    kinds = dict.fromkeys(map(classify, addresses))
    for kind in kinds:
        if kind in FORBIDDEN:
            raise AddressRefused(target.host, kind)
    try:
        ctx.require(*(scope_of(target, method, file=file, network=kind) for kind in kinds if kind is not known))
    except OpDenied as error:
        raise AddressDenied(ctx.op, target.host, tuple(kinds), error.hint) from None
    rules = connections.proxies
    return tuple(Peer(target.host, one, rules.for_address(target, one)) for one in addresses[:_MAX_PEERS])


def _require_by_name(
    target: RequestTarget, method: str, ctx: OpContext, file: str | None, known: AddressClass | None
) -> None:
    """Check everything that is known before the lookup, because a lookup discloses the name to name servers."""
    denied: OpDenied | None = None
    for kind in AddressClass if known is None else (known,):
        try:
            ctx.require(scope_of(target, method, file=file, network=kind))
        except OpDenied as error:
            denied = denied or error
        else:
            return
    if denied is not None:
        raise denied
