"""Speak with a server at an address, over Streamable HTTP or the older server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from ._failure import ConnectionFailure
from ._guarded import GuardedTransport

_CONNECT_SECONDS = 20.0


@asynccontextmanager
async def http_transport(
    url: str,
    server: str,
    *,
    headers: Mapping[str, str],
    sse: bool,
    local: bool,
    failure: ConnectionFailure,
    max_message_bytes: int,
    auth: httpx2.Auth | None = None,
) -> AsyncIterator[TransportStreams]:
    """Yield the streams of a server at an address.

    Args:
        url: the address.
        server: the name of the server, for errors.
        headers: the headers of each request.
        sse: whether it speaks the older protocol.
        local: whether its address may be one of this machine or of a private network.
        failure: gets the reason if the connection fails.
        max_message_bytes: the maximum size of a message.
        auth: adds the authorization.
    """

    def client(timeout: httpx2.Timeout | None = None, **_: object) -> httpx2.AsyncClient:
        limited = GuardedTransport(server, failure, limit=max_message_bytes, local=local)
        timeout = timeout or httpx2.Timeout(_CONNECT_SECONDS, read=None)
        return httpx2.AsyncClient(
            headers=dict(headers),
            timeout=timeout,
            transport=limited,
            auth=auth,
            trust_env=False,
            follow_redirects=False,
        )

    if sse:
        async with sse_client(url, httpx_client_factory=client, sse_read_timeout=None) as streams:  # type: ignore[arg-type]
            yield streams
        return
    async with (
        client() as http,
        streamable_http_client(url, http_client=http, max_sse_event_size=max_message_bytes) as streams,
    ):
        yield streams
