"""All sessions of a host: made, found, listed."""

from __future__ import annotations

import re
from pathlib import Path

from attrs import define, field

from ...store import Store
from ._entries import NameEntry, new_id, now, record_of
from ._errors import SessionAmbiguous, SessionNotFound
from ._header import SESSION_ID, SessionHeader
from ._info import SessionInfo
from ._lock import SessionLock
from ._records import SessionRecords, Stored
from ._session import Session
from ._tree import SessionTree

__all__ = ["Sessions"]


@define(init=False, eq=False)
class Sessions:
    """The sessions in a store.

    Args:
        store: where they are.
        home: the folder for all state; who writes a session holds a lock below it.

    Example:
        >>> async def last(host):
        ...     sessions = Sessions(host.store, host.home)
        ...     return await sessions.latest()
    """

    _records: SessionRecords = field(repr=False)
    _locks: Path

    def __init__(self, store: Store, home: Path) -> None:
        self._records = SessionRecords(store)
        self._locks = home / "sessions" / "locks"

    async def create(
        self, *, name: str | None = None, folder: Path | None = None, channel: str = "cli", parent: str | None = None
    ) -> Session:
        """Make a session, open for writing.

        Args:
            name: what the user calls it.
            folder: its working directory.
            channel: where its user is.
            parent: the session that it comes from.
        """
        header = _header(folder=folder, channel=channel, parent=parent)
        named = NameEntry(id=new_id(), time=header.time, name=name)
        lock = SessionLock.take(self._locks, header.id)
        try:
            stored = await self._records.create(header, [record_of(named)] if name else [])
        except BaseException:
            lock.release()
            raise
        return Session.of(self._records, lock, stored, is_new=True)

    async def open(self, session: str) -> Session:
        """Open a session for writing.

        Args:
            session: its id, the beginning of its id, or its name.

        Raises:
            SessionNotFound: there is none.
            SessionAmbiguous: there are several.
            SessionLocked: somebody else writes it.
        """
        found = await self._find(session)
        lock = SessionLock.take(self._locks, found)
        try:
            stored = await self._read(found)
        except BaseException:
            lock.release()
            raise
        return Session.of(self._records, lock, stored, is_new=False)

    async def read(self, session: str) -> SessionTree:
        """The entries of a session as they are now, also while somebody writes it.

        Raises:
            SessionNotFound, SessionAmbiguous: as ``open``.
        """
        return (await self._read(await self._find(session))).tree

    async def latest(self, folder: Path | None = None) -> SessionInfo | None:
        """The session that was used last, in a folder or anywhere."""
        found = await self.list(folder=folder, limit=1)
        return found[0] if found else None

    async def list(
        self, *, folder: Path | None = None, text: str | None = None, limit: int = 50
    ) -> tuple[SessionInfo, ...]:
        """Sessions, the one that was used last first. Those in which nothing was said are left out.

        Args:
            folder: only those of this working directory.
            text: only those in whose names or messages this occurs, in capitals or not.
            limit: how many at most.
        """
        infos = [info for info in await self._records.infos() if not info.is_empty]
        if folder is not None:
            infos = [info for info in infos if info.folder == _folder(folder)]
        infos.sort(key=lambda info: (info.updated, info.id), reverse=True)
        if text is None:
            return tuple(infos[:limit])
        found: list[SessionInfo] = []
        for info in infos:
            if len(found) >= limit:
                break
            if await self._records.contains(info, text.casefold()):
                found.append(info)
        return tuple(found)

    async def _read(self, session: str) -> Stored:
        stored = await self._records.read(session)
        if stored is None:
            raise SessionNotFound(session)
        return stored

    async def _find(self, session: str) -> str:
        if re.match(SESSION_ID, session) and await self._records.exists(session):
            return session
        infos = await self._records.infos()
        found = [info.id for info in infos if info.name == session]
        found = found or [info.id for info in infos if session and info.id.startswith(session)]
        if not found:
            raise SessionNotFound(session, [*(info.name for info in infos if info.name), *(info.id for info in infos)])
        if len(found) > 1:
            raise SessionAmbiguous(session, found)
        return found[0]


def _header(*, folder: Path | None, channel: str, parent: str | None = None) -> SessionHeader:
    return SessionHeader(
        id=new_id(),
        time=now(),
        folder=None if folder is None else _folder(folder),
        channel=channel,
        parent=parent,
    )


def _folder(folder: Path) -> str:
    return str(folder.absolute())
