"""Create, find, list, fork, export and import the sessions of a host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from anyio import to_thread
from attrs import define, field
from sideband.approvals import Approval, Approvals
from sideband.store import Store

from ._copies import Copy, Position, copy_of_path, without_approvals
from ._entry_redaction import Redact
from ._errors import SessionAmbiguous, SessionNotFound
from ._foreign_formats import OUR_FORMAT
from ._format import NameEntry, SessionHeader, is_session_id, new_id, now, record_of
from ._info import SessionInfo
from ._lock import SessionLock
from ._session import Session
from ._session_files import copy_of_lines, export_lines
from ._session_store import SessionRecords, StoredSession
from ._tree import EntryTree


@define(init=False, eq=False)
class Sessions:
    """The sessions in a store.

    Args:
        store: the store that contains them.
        home: the host's state folder, which contains the locks of sessions unless the store is shared.
        redact: removes secrets from plain data. Applied to everything that is stored or shown to a model later.

    Example:
        >>> async def last(host):
        ...     sessions = Sessions(host.store, host.home)
        ...     return await sessions.latest()
    """

    _records: SessionRecords = field(repr=False)
    _locks: Path

    def __init__(self, store: Store, home: Path, *, redact: Redact | None = None) -> None:
        self._records = SessionRecords(store, redact)
        self._locks = home / "sessions" / "locks"

    async def create(
        self,
        *,
        name: str | None = None,
        folder: Path | None = None,
        channel: str = "cli",
        parent: str | None = None,
        id: str | None = None,  # noqa: A002 - the usual term
    ) -> Session:
        """Create a session, open for writing.

        Args:
            name: its name.
            folder: its working directory.
            channel: the channel through which the user talks to the agent.
            parent: the session that it is derived from.
            id: its id; a new one if ``None``.

        Raises:
            StoreConflict: if a session has this id.
        """
        header = SessionHeader(
            id=id or new_id(),
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
            session: its id, a prefix of its id, or its name.

        Raises:
            SessionNotFound: if no session matches.
            SessionAmbiguous: if several sessions match.
            SessionLocked: if another writer has it open.
            SessionTooNew: if a newer sideband-agent has written it.
        """
        found = await self._find(session)
        lock = await self._take_lock(found)
        try:
            stored = await self._read(found)
        except BaseException:
            await lock.release()
            raise
        return Session.of(self._records, lock, stored, is_new=False)

    async def read(self, session: str) -> EntryTree:
        """Return the current entries of a session, which may be open for writing.

        Raises:
            SessionNotFound, SessionAmbiguous, SessionTooNew: as for ``open``.
        """
        return (await self._read(await self._find(session))).tree

    async def exists(self, session: str) -> bool:
        """Return whether a session has this id."""
        return await self._records.exists(session)

    async def latest(self, folder: Path | None = None) -> SessionInfo | None:
        """Return the most recently used session, in a folder or overall, or ``None``."""
        found = await self.list(folder=folder, limit=1)
        return found[0] if found else None

    async def list(
        self, *, folder: Path | None = None, text: str | None = None, limit: int = 50
    ) -> tuple[SessionInfo, ...]:
        """Return sessions, most recently used first. Empty ones are omitted.

        Args:
            folder: only sessions with this working directory.
            text: only sessions whose name or messages contain this text, ignoring case.
            limit: the maximum number of sessions.
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
        """Copy the path to an entry of another session to a new one, open for writing. The other one is not changed.

        Args:
            session: the other session: its id, a prefix of its id, or its name. It may be open for writing.
            entry: the id of the entry; its current leaf if ``None``.
            position: whether the copy includes the entry.

        Raises:
            EntryNotFound: if the entry does not exist.
            SessionNotFound, SessionAmbiguous: as for ``open``.
        """
        found = await self._find(session)
        tree = (await self._read(found)).tree
        return await self._create(copy_of_path(tree, await self._records.since(found, 1), entry, position))

    async def delete(self, session: str, *, approvals: Approvals | None = None, by: str = "user") -> None:
        """Delete a session, the sessions of its child agents, and everything stored for them. Its forks remain.

        Args:
            session: its id, a prefix of its id, or its name.
            approvals: those of the host, to end the requests and the grants of these sessions with them.
            by: who deletes it, for the record.

        Raises:
            SessionNotFound, SessionAmbiguous, SessionLocked: as for ``open``.
        """
        found = await self._find(session)
        lock = await self._take_lock(found)
        try:
            if approvals is not None:
                # before the session: an imported one may have the same id
                await _end_rights({found, *await self._records.within(found)}, approvals, by)
            await self._records.delete(found)
        finally:
            await lock.release()

    async def export(self, session: str, *, format: str = OUR_FORMAT) -> Iterator[str]:  # noqa: A002 - the usual term
        """Serialize the current session as JSON Lines, including newlines.

        Args:
            session: its id, a prefix of its id, or its name. It may be open for writing.
            format: ``sideband``, or the name of an installed format, such as ``pi`` (sideband-pi-sessions).

        Raises:
            SessionNotFound, SessionAmbiguous: as for ``open``.
            SessionFormatMissing: if the format is not installed.
        """
        found = await self._find(session)
        tree = (await self._read(found)).tree
        return export_lines(tree, await self._records.since(found, 1), format)

    async def import_(
        self, lines: Iterable[bytes | str], *, name: str | None = None
    ) -> tuple[SessionInfo, tuple[str, ...]]:
        """Import a session from a file, in our format or an installed one.

        It keeps its id if that is unused. Its runs cannot be resumed: a file must not cause effects.

        Args:
            lines: the lines of the file; read in a thread.
            name: the name of the imported session.

        Returns:
            The session, and notices of what was damaged or not understood.

        Raises:
            SessionUnreadable: if the file is not a session, or its version is not supported. Nothing was stored.
            SessionFormatMissing: if the file has another program's format that is not installed.
        """
        copy = await to_thread.run_sync(copy_of_lines, lines)
        header, notices = copy.header, copy.notices
        if await self._records.exists(header.id):
            header = header.model_copy(update={"id": new_id()})
            notices = (*notices, f"session `{copy.header.id}` already exists; imported as `{header.id}`")
        async with await self._create(Copy(header, without_approvals(copy.records))) as session:
            if name:
                await session.rename(name)
        return session.info, notices

    async def _create(self, copy: Copy) -> Session:
        lock = await self._take_lock(copy.header.id)
        try:
            stored = await self._records.create(copy.header, copy.records)
        except BaseException:
            await lock.release()
            raise
        return Session.of(self._records, lock, stored, is_new=True)

    async def _take_lock(self, session: str) -> SessionLock:
        return await SessionLock.take(self._records.store, self._locks, session)

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


async def _end_rights(sessions: set[str], approvals: Approvals, by: str) -> None:
    """Revoke the grants for sessions, and delete the requests of their runs."""
    ended = Approval("deny", reason="the session was deleted", by=by)
    for stored in await approvals.list():
        is_its = stored.request.origin.session in sessions and stored.state == "granted"
        if is_its and stored.answer is not None and stored.answer.scope == "session":
            await approvals.answer(stored.request.id, ended)
    await approvals.withdraw(sessions=sessions)


def _folder(folder: Path) -> str:
    return str(folder.absolute())
