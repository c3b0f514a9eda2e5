"""A pool that does not use a connection again on which more came than the answer.

httpcore keeps what follows an answer, and reads it as the answer to the next request on that connection: whoever gets a
server to send a few bytes too many would answer the requests of others.
"""

from __future__ import annotations

import httpcore


class CleanPool(httpcore.AsyncConnectionPool):
    """As httpcore's, with clean connections."""

    def create_connection(self, origin: httpcore.Origin) -> httpcore.AsyncConnectionInterface:
        """A connection that counts as expired once something lies in it that nobody asked for."""
        return _CleanConnection(super().create_connection(origin))


class _CleanConnection(httpcore.AsyncConnectionInterface):
    def __init__(self, connection: httpcore.AsyncConnectionInterface) -> None:
        self._connection = connection

    async def handle_async_request(self, request: httpcore.Request) -> httpcore.Response:
        return await self._connection.handle_async_request(request)

    async def aclose(self) -> None:
        await self._connection.aclose()

    def info(self) -> str:
        return self._connection.info()

    def can_handle_request(self, origin: httpcore.Origin) -> bool:
        return self._connection.can_handle_request(origin)

    def is_available(self) -> bool:
        return self._connection.is_available()

    def has_expired(self) -> bool:
        return self._connection.has_expired() or (self._connection.is_idle() and _has_surplus(self._connection))

    def is_idle(self) -> bool:
        return self._connection.is_idle()

    def is_closed(self) -> bool:
        return self._connection.is_closed()


def _has_surplus(connection: httpcore.AsyncConnectionInterface) -> bool:
    # Nothing public tells. Without these attributes, in another version of httpcore, no connection is used again.
    spoken = getattr(connection, "_connection", None)
    if isinstance(spoken, httpcore.AsyncHTTP2Connection):
        return False
    try:
        surplus, _ = spoken._h11_state.trailing_data  # type: ignore[union-attr]  # noqa: SLF001
    except AttributeError:
        return True
    return bool(surplus)
