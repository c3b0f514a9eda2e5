"""All sessions of a host: made, found, listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from anyio import to_thread
from attrs import define, field
from sideband.store import Store

from ._copies import Copy, Position, copy_of_path
from ._errors import SessionAmbiguous, SessionNotFound
from ._foreign_formats import OUR_FORMAT
from ._format import NameEntry, SessionHeader, is_session_id, new_id, now, record_of
from ._info import SessionInfo
from ._lock import SessionLock
from ._session import Session
from ._session_files import copy_of_lines, export_lines
from ._session_store import SessionRecords, StoredSession
from ._tree import SessionTree


@define(init=False, eq=False)
class Sessions:
    """The sessions in a store.

    Args:
        store: where they are.
        home: the folder for all state; who writes a session holds a lock below it.
        redact: takes what is secret out of a text. Nothing is stored, or shown to a model later, that did not pass it.

    Example:
        >>> async def last(host):
        ...     sessions = Sessions(host.store, host.home)
        ...     return await sessions.latest()
    """

    _records: SessionRecords = field(repr=False)
    _locks: Path

    def __init__(self, store: Store, home: Path, *, redact: Callable[[str], str] | None = None) -> None:
        self._records = SessionRecords(store, redact)
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
        header = SessionHeader(
            id=new_id(),
            time=now(),
            folder=None if folder is None else _folder(folder),
            channel=channel,
            parent=parent,
        )
        named = NameEntry(id=new_id(), time=header.time, name=name)
        return await self._create(Copy(header, [record_of(named)] if name else []))

    async def open(self, session: str) -> Session:
        """Open a session for writing.

        Args:
            session: its id, the beginning of its id, or its name.

        Raises:
            SessionNotFound: there is none.
            SessionAmbiguous: there are several.
            SessionLocked: somebody else writes it.
            SessionTooNew: a newer sideband-agent has written it.
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
            SessionNotFound, SessionAmbiguous, SessionTooNew: as ``open``.
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

    async def fork(self, session: str, entry: str | None = None, *, position: Position = "at") -> Session:
        """Make a session of the way to an entry of another one, open for writing. The other one stays as it is.

        Args:
            session: the other one: its id, the beginning of its id, or its name. Somebody may be writing it.
            entry: the entry; ``None``: where its conversation stands.
            position: whether the entry itself is a part of it.

        Raises:
            EntryNotFound: there is no such entry.
            SessionNotFound, SessionAmbiguous: as ``open``.
        """
        found = await self._find(session)
        tree = (await self._read(found)).tree
        return await self._create(copy_of_path(tree, await self._records.since(found, 1), entry, position))

    async def delete(self, session: str) -> None:
        """Remove a session, with all that was said in it. Its forks stay.

        Raises:
            SessionNotFound, SessionAmbiguous, SessionLocked: as ``open``.
        """
        found = await self._find(session)
        lock = SessionLock.take(self._locks, found)
        try:
            await self._records.delete(found)
        finally:
            lock.release()

    async def export(self, session: str, *, format: str = OUR_FORMAT) -> Iterator[str]:  # noqa: A002 - the word for it
        """A session as JSON Lines, each with its end, as it is now.

        Args:
            session: its id, the beginning of its id, or its name. Somebody may be writing it.
            format: ``sideband``, or one that an installed package has, such as ``pi`` (sideband-pi-sessions).

        Raises:
            SessionNotFound, SessionAmbiguous: as ``open``.
            SessionFormatMissing: no installed package has the format.
        """
        found = await self._find(session)
        tree = (await self._read(found)).tree
        return export_lines(tree, await self._records.since(found, 1), format)

    async def import_(
        self, lines: Iterable[bytes | str], *, name: str | None = None
    ) -> tuple[SessionInfo, tuple[str, ...]]:
        """Store a session from a file: ours, or one in a format that an installed package has.

        It keeps its id if that is free. A run that it has begun can't be gone on with: a file must not cause effects.

        Args:
            lines: the lines of the file; read in a thread.
            name: what to call it.

        Returns:
            The session, and what was damaged or not understood.

        Raises:
            SessionUnreadable: it is no session, or one of a version that is not known. Nothing was stored.
            SessionFormatMissing: it is another program's, and no installed package has its format.
        """
        copy = await to_thread.run_sync(copy_of_lines, lines)
        header, notices = copy.header, copy.notices
        if await self._records.exists(header.id):
            header = header.model_copy(update={"id": new_id()})
            notices = (*notices, f"there is a session `{copy.header.id}` already: this one is `{header.id}`")
        async with await self._create(Copy(header, copy.records)) as session:
            if name:
                await session.rename(name)
        return session.info, notices

    async def _create(self, copy: Copy) -> Session:
        lock = SessionLock.take(self._locks, copy.header.id)
        try:
            stored = await self._records.create(copy.header, copy.records)
        except BaseException:
            lock.release()
            raise
        return Session.of(self._records, lock, stored, is_new=True)

    async def _read(self, session: str) -> StoredSession:
        stored = await self._records.read(session)
        if stored is None:
            raise SessionNotFound(session)
        return stored

    async def _find(self, session: str) -> str:
        if is_session_id(session) and await self._records.exists(session):
            return session
        infos = await self._records.infos()
        found = [info.id for info in infos if info.name == session]
        found = found or [info.id for info in infos if session and info.id.startswith(session)]
        if not found:
            raise SessionNotFound(session, [*(info.name for info in infos if info.name), *(info.id for info in infos)])
        if len(found) > 1:
            raise SessionAmbiguous(session, found)
        return found[0]


def _folder(folder: Path) -> str:
    return str(folder.absolute())
