"""The state of the plugin during the lifetime of the host."""

from __future__ import annotations

from weakref import WeakValueDictionary

import anyio
from attrs import define, field

from ._exchange._sessions import HttpSessions
from ._transport._connections import HttpConnections


@define
class HttpState:
    """The connections and sessions of the host. Requests outside sessions share only the connections.

    A trust domain may use at most half of the connections, so that a skill cannot block all others.
    """

    connections: HttpConnections
    sessions: HttpSessions
    user_agent: str
    _domains: WeakValueDictionary[str, anyio.CapacityLimiter] = field(init=False, factory=WeakValueDictionary)

    def share(self, domain: str) -> anyio.CapacityLimiter:
        """Return the limiter that a request outside sessions holds while it uses a connection."""
        limit = max(1, self.connections.max_connections // 2)
        return self._domains.setdefault(domain, anyio.CapacityLimiter(limit))

    def new_connections(self) -> HttpConnections:
        """Return new connections for a session. Many small pools are faster than a large one."""
        return self.connections.another()

    async def aclose(self) -> None:
        """Close everything."""
        await self.sessions.aclose()
        await self.connections.aclose()
