"""What the family keeps while the host lives."""

from __future__ import annotations

from pathlib import Path
from typing import Self
from weakref import WeakValueDictionary

import anyio
from attrs import define, field

from ._sessions import Sessions
from ._transport import Connections, TransportFactory, Trust, httpx_transport

__all__ = ["HttpState"]


@define
class HttpState:
    """The host's connections and sessions. Requests outside of sessions share connections, and nothing else.

    One trust domain gets at most half of the connections, so that no skill can keep all others waiting.
    """

    connections: Connections
    sessions: Sessions
    user_agent: str
    _domains: WeakValueDictionary[str, anyio.CapacityLimiter] = field(init=False, factory=WeakValueDictionary)

    def share(self, domain: str) -> anyio.CapacityLimiter:
        """What a request outside of sessions holds while it uses a connection."""
        limit = max(1, self.connections.max_connections // 2)
        return self._domains.setdefault(domain, anyio.CapacityLimiter(limit))

    @classmethod
    def create(
        cls,
        *,
        user_agent: str,
        ca_file: Path | None,
        max_connections: int,
        max_sessions: int,
        factory: TransportFactory = httpx_transport,
    ) -> Self:
        """A state in which nothing is open."""
        return cls(Connections(Trust(ca_file), max_connections, factory), Sessions(max_sessions), user_agent)

    def new_connections(self) -> Connections:
        """Connections for a session: of its own, since one large pool is slower than many small ones."""
        shared = self.connections
        return Connections(shared.trust, shared.max_connections, shared.factory, shared.resolver)

    async def aclose(self) -> None:
        """Close everything."""
        await self.sessions.aclose()
        await self.connections.aclose()
