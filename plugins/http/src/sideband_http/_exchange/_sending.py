"""Sending a request to the first of its addresses that accepts a connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._request._plan import Hop, RequestPlan
from .._transport._connections import HttpConnections
from .._transport._failures import is_about_tls
from .._transport._interface import Peer

if TYPE_CHECKING:
    import httpx

# The connect timeout for each address of a name except the last.
_NEXT_PEER_SECONDS = 3.0


async def send(
    request: httpx.Request, hop: Hop, plan: RequestPlan, connections: HttpConnections, peers: Sequence[Peer]
) -> httpx.Response:
    """Send the request to the first peer that accepts a connection. The peers before it have received nothing."""
    import httpx  # noqa: PLC0415  slow to import; only requests need it

    *others, last = connections.in_order(peers)
    for peer in others:
        request.extensions["timeout"] = httpx.Timeout(
            plan.timeout, connect=min(_NEXT_PEER_SECONDS, plan.timeout)
        ).as_dict()
        try:
            return await _send_to(peer, request, hop, plan, connections)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            if is_about_tls(error):
                raise
    request.extensions["timeout"] = httpx.Timeout(plan.timeout).as_dict()
    return await _send_to(last, request, hop, plan, connections)


async def _send_to(
    peer: Peer, request: httpx.Request, hop: Hop, plan: RequestPlan, connections: HttpConnections
) -> httpx.Response:
    peer.attach(request)
    transport = await connections.transport(
        hop.target.scheme, http2=plan.http2, origin=hop.target.origin, proxied=peer.proxy is not None
    )
    response = await transport.handle_async_request(request)
    connections.reached(peer)
    response.request = request
    return response
