"""The open sessions of one client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

import anyio
from anyio.abc import TaskGroup
from attrs import define, field
from sideband.errors import SidebandError
from sideband_agent.sessions import SessionInfo, Sessions

from ._choices import SessionChoices
from ._client import AcpClient
from ._errors import AcpBusy, AcpSessionsExceeded, AcpSessionUnknown
from ._given_servers import GivenServer
from ._limits import AcpLimits
from ._session import AcpSession

if TYPE_CHECKING:
    from sideband import Host


@define(eq=False)
class OpenSessions:
    """The open sessions of one client.

    Args:
        host: the host.
        choices: what the command line says.
        limits: the limits.
    """

    host: Host = field(repr=False)
    choices: SessionChoices
    limits: AcpLimits
    _tasks: TaskGroup = field(repr=False)
    _open: dict[str, AcpSession] = field(factory=dict, init=False, repr=False)
    _opening: anyio.Lock = field(factory=anyio.Lock, init=False, repr=False)

    @classmethod
    @asynccontextmanager
    async def opened(cls, host: Host, choices: SessionChoices, limits: AcpLimits) -> AsyncIterator[Self]:
        """Yield the sessions. They are closed at the end, which cancels and stores the runs in progress."""
        try:
            async with anyio.create_task_group() as tasks:
                sessions = cls(host, choices, limits, tasks)
                try:
                    yield sessions
                finally:
                    with anyio.move_on_after(2 * limits.seconds, shield=True):
                        await sessions.close_all()
                    tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:  # its only member comes from the block
            raise group.exceptions[0] from None

    async def create(self, client: AcpClient, folder: Path, servers: Sequence[GivenServer] = ()) -> AcpSession:
        """Open a new session.

        Raises:
            AcpSessionsExceeded: if too many are open.
            SidebandError: if it cannot be opened.
        """
        async with self._opening:
            return await self._start(AcpSession(self.host, client, self.choices, self.limits, folder, servers))

    async def restore(
        self, client: AcpClient, folder: Path, session: str, servers: Sequence[GivenServer] = ()
    ) -> AcpSession:
        """Open a stored session. One that is open already is opened again.

        Raises:
            AcpSessionUnknown: if there is no such session.
            AcpBusy: if it is working.
            AcpSessionsExceeded: if too many are open.
            SidebandError: if it cannot be opened.
        """
        async with self._opening:
            if (found := self._open.get(session)) is not None and found.is_open:
                if found.is_working:
                    raise AcpBusy
                found.close()
                await found.ended.wait()
            elif not await self._exists(session):
                raise AcpSessionUnknown(session)
            return await self._start(AcpSession(self.host, client, self.choices, self.limits, folder, servers, session))

    async def _exists(self, session: str) -> bool:
        try:
            return await self._stored().exists(session)
        except SidebandError:  # a name that no session can have
            return False

    async def _start(self, session: AcpSession) -> AcpSession:
        self._open = {name: one for name, one in self._open.items() if one.is_open}
        if len(self._open) >= self.limits.sessions:
            raise AcpSessionsExceeded(self.limits.sessions)
        await self._tasks.start(session.run)
        self._open[session.id] = session
        return session

    def get(self, session: str) -> AcpSession:
        """Return an open session.

        Raises:
            AcpSessionUnknown: if it is not open.
        """
        found = self._open.get(session)
        if found is None or not found.is_open:
            raise AcpSessionUnknown(session)
        return found

    async def close(self, session: str) -> None:
        """Close an open session, and wait for that.

        Raises:
            AcpSessionUnknown: if it is not open.
        """
        found = self.get(session)
        found.close()
        await found.ended.wait()
        self._open.pop(session, None)

    async def list(self, folder: Path | None, first: int) -> tuple[list[SessionInfo], bool]:
        """Return a page of the stored sessions that have a folder, and whether there are more.

        Args:
            folder: only those of this folder.
            first: the number of sessions before the page.
        """
        last = first + self.limits.listed
        found = await self._stored().list(folder=folder, limit=last + 1)
        return [one for one in found[first:last] if one.folder], len(found) > last

    def cancel_all(self) -> None:
        """Cancel the prompts in progress."""
        for one in self._open.values():
            if one.is_open:
                one.cancel("the editor has left")

    async def close_all(self) -> None:
        """Close all sessions, and wait for that."""
        for one in self._open.values():
            one.close()
        for one in self._open.values():
            await one.ended.wait()

    def _stored(self) -> Sessions:
        return Sessions(self.host.store, self.host.home)
