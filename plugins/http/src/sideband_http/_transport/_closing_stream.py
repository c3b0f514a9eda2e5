"""A connection that is closed if its TLS handshake fails or is cancelled.

httpcore closes it only on errors, so each request cancelled during the handshake would leak a socket.
"""

from __future__ import annotations

import ssl
from typing import Any

import anyio
import httpcore


class ClosingStream(httpcore.AsyncNetworkStream):
    """A wrapper that closes a stream if its TLS handshake fails or is cancelled."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  httpcore's signature
        """Read the next bytes."""
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109  httpcore's signature
        """Send bytes."""
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's signature
    ) -> httpcore.AsyncNetworkStream:
        """Start TLS, or close the stream."""
        try:
            return await self._stream.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._stream.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        """Return information about the stream."""
        return self._stream.get_extra_info(info)
