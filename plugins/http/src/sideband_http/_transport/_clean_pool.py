"""A connection pool that does not reuse a connection with surplus data after a response.

httpcore keeps the surplus and parses it as the response to the next request on that connection. An attacker who makes a
server send a few extra bytes could forge the responses to other requests.
"""

from __future__ import annotations

import httpcore


class CleanPool(httpcore.AsyncConnectionPool):
    """The pool of httpcore, but with clean connections."""

    def create_connection(self, origin: httpcore.Origin) -> httpcore.AsyncConnectionInterface:
        """Return a connection that counts as expired once it has surplus data."""
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
    # httpcore has no public API for this. If another version lacks these attributes, connections are not reused.
    inner = getattr(connection, "_connection", None)
    if isinstance(inner, httpcore.AsyncHTTP2Connection):
        return False
    try:
        surplus, _ = inner._h11_state.trailing_data  # type: ignore[union-attr]  # noqa: SLF001
    except AttributeError:
        return True
    return bool(surplus)
