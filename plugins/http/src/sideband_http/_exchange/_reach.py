"""Who a request may be sent to: what its host resolves to, checked against the grant before anything is connected."""

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

# More would only be tried if all of these did not answer.
_MOST_PEERS = 8


async def peers_of(
    target: RequestTarget, method: str, ctx: OpContext, connections: HttpConnections, *, file: str | None = None
) -> tuple[Peer, ...]:
    """The addresses that a request may be sent to, the preferred one first.

    If one of a name's addresses is not granted, none is used: which of them gets the request is up to whoever answers
    for the name, and would change from one request to the next.

    Raises:
        OpDenied: the grant does not allow the request. If that is clear from its URL, the name is not even looked up.
        EgressRefused: its URL holds a secret.
        AddressRefused: it is an address where nobody may go.
        ConnectFailed: the name stands for no address.
    """
    known = network_of(target.host)
    _require_by_name(target, method, ctx, file, known)
    check_url(target, method, ctx)
    if known is None and (proxy := connections.proxies.for_name(target)) is not None:
        # Where it leads is only known to the proxy, whom the configuration trusts with that.
        ctx.require(scope_of(target, method, file=file, network=AddressClass.PUBLIC))
        return (Peer(target.host, None, proxy),)
    try:
        addresses = await connections.resolver.resolve(target.host, ctx.domain)
    except NameUnresolved as error:
        raise ConnectFailed(target.origin, str(error)) from None
    for kind in dict.fromkeys(map(classify, addresses)):
        if kind in FORBIDDEN:
            raise AddressRefused(target.host, kind)
        if kind is known:
            continue
        try:
            ctx.require(scope_of(target, method, file=file, network=kind))
        except OpDenied:
            raise AddressDenied(ctx.op, target.host, kind) from None
    rules = connections.proxies
    return tuple(Peer(target.host, one, rules.for_address(target, one)) for one in addresses[:_MOST_PEERS])


def _require_by_name(
    target: RequestTarget, method: str, ctx: OpContext, file: str | None, known: AddressClass | None
) -> None:
    """Check all that is known before a name is looked up, since a lookup tells the name to strangers."""
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
