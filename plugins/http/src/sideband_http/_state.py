"""What the family keeps while the host lives."""

from __future__ import annotations

from weakref import WeakValueDictionary

import anyio
from attrs import define, field

from ._exchange._sessions import HttpSessions
from ._transport._connections import HttpConnections


@define
class HttpState:
    """The host's connections and sessions. Requests outside of sessions share connections, and nothing else.

    One trust domain gets at most half of the connections, so that no skill can keep all others waiting.
    """

    connections: HttpConnections
    sessions: HttpSessions
    user_agent: str
    _domains: WeakValueDictionary[str, anyio.CapacityLimiter] = field(init=False, factory=WeakValueDictionary)

    def share(self, domain: str) -> anyio.CapacityLimiter:
        """What a request outside of sessions holds while it uses a connection."""
        limit = max(1, self.connections.max_connections // 2)
        return self._domains.setdefault(domain, anyio.CapacityLimiter(limit))

    def new_connections(self) -> HttpConnections:
        """Connections for a session: of its own, since one large pool is slower than many small ones."""
        return self.connections.another()

    async def aclose(self) -> None:
        """Close everything."""
        await self.sessions.aclose()
        await self.connections.aclose()
