"""The sessions of all clients."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from ._client_session import ClientSession, Limits
from ._offer import Offer

if TYPE_CHECKING:
    from sideband import Host

_CLOSE_SECONDS = 10.0
_Key = tuple[str, bool]


class TooManySessions(Exception):
    """The server has too many clients."""


@define(eq=False)
class ClientSessions:
    """The sessions of the clients of one server.

    Args:
        host: the host.
        offer: what clients are offered.
        limits: the limits.
        lasting: whether there is one client, whose sessions last as long as its connection.
        yes: whether the host answers what needs an approval, and no client is asked about it.
    """

    host: Host = field(repr=False)
    offer: Offer
    limits: Limits
    lasting: bool
    yes: bool
    _tasks: TaskGroup = field(repr=False)
    _open: dict[_Key, ClientSession] = field(factory=dict, init=False, repr=False)
    _opening: anyio.Lock = field(factory=anyio.Lock, init=False, repr=False)

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, host: Host, offer: Offer, limits: Limits, *, lasting: bool, yes: bool = False
    ) -> AsyncIterator[Self]:
        """Yield the sessions. They are closed at the end, which cancels and records the calls in progress."""
        try:
            async with anyio.create_task_group() as tasks:
                sessions = cls(host, offer, limits, lasting, yes, tasks)
                try:
                    yield sessions
                finally:
                    with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                        await sessions.close()
                    tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:  # its only member comes from the block
            raise group.exceptions[0] from None

    async def get(self, connection: str, client: str, *, asks: bool) -> ClientSession:
        """Return the session of a client, which is opened if needed.

        Args:
            connection: the id of its connection; empty for clients of the newer protocol, which do not have one.
            client: its name, as it says.
            asks: whether it can ask its user.

        Raises:
            TooManySessions: if there are too many.
            SidebandError: if the session could not be opened.
        """
        key = connection, asks
        async with self._opening:
            found = self._open.get(key)
            if found is None or not found.is_open:
                self._open = {each: one for each, one in self._open.items() if one.is_open}
                if len(self._open) >= self.limits.sessions:
                    raise TooManySessions
                idle = None if self.lasting else self.limits.idle_seconds
                found = ClientSession(self.host, self.offer, self.limits, client, asks, idle, self.yes)
                await self._tasks.start(found.run)
                self._open[key] = found
        return found

    def end(self, connection: str) -> None:
        """End the sessions of a connection."""
        for (each, _), one in self._open.items():
            if each == connection:
                one.close()

    async def close(self) -> None:
        """End all sessions, and wait for that."""
        for one in self._open.values():
            one.close()
        for one in self._open.values():
            await one.ended.wait()
