"""A connection that is closed if it does not become a secure one, also when the wait for that is cancelled.

httpcore closes it on errors only: each request that was cancelled during a handshake would leave a socket behind.
"""

from __future__ import annotations

import ssl
from typing import Any

import anyio
import httpcore


class ClosingStream(httpcore.AsyncNetworkStream):
    """Another stream, closed if its handshake fails."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  httpcore's signature
        """The next bytes."""
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109  httpcore's signature
        """Send."""
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close it."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's signature
    ) -> httpcore.AsyncNetworkStream:
        """Become a secure connection, or be closed."""
        try:
            return await self._stream.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._stream.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        """What is known about it."""
        return self._stream.get_extra_info(info)
