"""What the family keeps while the host lives."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from attrs import define

from ._sessions import Sessions
from ._transport import Connections, Trust

__all__ = ["HttpState"]


@define
class HttpState:
    """The host's connections and sessions. Requests outside of sessions share connections, and nothing else."""

    connections: Connections
    sessions: Sessions
    user_agent: str

    @classmethod
    def create(cls, *, user_agent: str, ca_file: Path | None, max_connections: int, max_sessions: int) -> Self:
        """A state in which nothing is open."""
        return cls(Connections(Trust(ca_file), max_connections), Sessions(max_sessions), user_agent)

    def new_connections(self) -> Connections:
        """Connections for a session: of its own, since one large pool is slower than many small ones."""
        shared = self.connections
        return Connections(shared.trust, shared.max_connections, shared.factory)

    async def aclose(self) -> None:
        """Close everything."""
        await self.sessions.aclose()
        await self.connections.aclose()
