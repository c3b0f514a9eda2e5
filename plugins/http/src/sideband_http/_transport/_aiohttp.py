"""The transport based on aiohttp, changed to connect only to the checked address.

aiohttp is optional, so this module is imported only if it is chosen.
"""

from __future__ import annotations

import httpx
from sideband_model_client.fast_transport import AiohttpTransport

from .._request._streams import BytesStream
from ._interface import TransportOptions, peer_of

_KEEPALIVE_SECONDS = 15.0
_MAX_UNSTREAMED_BYTES = 65_536


class PinnedAiohttpTransport(AiohttpTransport):
    """Sends each request to its ``peer``, over HTTP/1.1."""

    def __init__(self, options: TransportOptions) -> None:
        super().__init__(options.tls, max_connections=options.max_connections, keep_seconds=_KEEPALIVE_SECONDS)

    def destination_of(self, request: httpx.Request) -> tuple[str, str | None]:
        """Return the checked address, and the name in the URL."""
        peer = peer_of(request)
        return str(peer.address), peer.name

    def upload_of(self, request: httpx.Request) -> bytes | httpx.AsyncByteStream | None:
        """Return a short body as bytes, and a long one as a stream, so that other tasks can run between its pieces."""
        stream = request.stream
        if isinstance(stream, BytesStream) and len(stream.content) <= _MAX_UNSTREAMED_BYTES:
            return stream.content or None
        return super().upload_of(request)
