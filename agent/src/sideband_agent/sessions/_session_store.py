"""The layout of sessions in a store: one stream and one document each.

The stream is the session: its header, followed by its entries. The document, read for lists, summarizes the first
``records`` records of the stream and can always be rebuilt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen
from sideband.store import Store, Transaction

from ._entry_redaction import Redact, redacted
from ._errors import SessionTooNew
from ._format import Entry, SessionHeader, header_of, record_of
from ._info import SessionInfo, info_of, read_info, texts_of, update_info
from ._tree import EntryTree

_KEYS = "sessions/"


@frozen
class StoredSession:
    """A session that was read from the store.

    Attributes:
        tree: its entries.
        records: the number of records in its stream.
        info: its summary for lists.
    """

    tree: EntryTree
    records: int
    info: SessionInfo


@frozen
class SessionRecords:
    """Access to the streams and documents of sessions.

    Args:
        store: the store.
        redact: removes secrets from plain data; ``None`` to store it unchanged.
    """

    store: Store = field(repr=False)
    redact: Redact | None = field(default=None, repr=False)

    async def create(self, header: SessionHeader, entries: Sequence[Mapping[str, Any]]) -> StoredSession:
        """Store a new session atomically."""
        tree = EntryTree.of(header, entries)
        info = update_info(info_of(header), entries)
        async with self.store.transaction(durable=False) as transaction:
            await transaction.put(_KEYS + header.id, _document(info, 1 + len(entries), settled=False), version=0)
            await transaction.append(self._stream(header.id), [header.record(), *entries])
        return StoredSession(tree, 1 + len(entries), info)

    async def read(self, session: str) -> StoredSession | None:
        """Return the session with this id, or ``None`` if it does not exist.

        Raises:
            SessionTooNew: if it has a newer version of the format.
        """
        records = [record.value for record in await self.store.read(self._stream(session))]
        if not records:
            return None
        header = header_of(records[0])
        if header is not None and header.id == session:
            tree = EntryTree.of(header, records[1:])
        else:
            # without a header it is unknown which entries were copied, so none of the runs may be resumed
            tree = EntryTree.of(SessionHeader(id=session, copied=len(records)), records[1:])
            tree.notices.insert(0, "the header is damaged: the working directory and the parent are unknown")
        return StoredSession(tree, len(records), update_info(info_of(tree.header), records[1:]))

    async def since(self, session: str, start: int) -> list[Mapping[str, Any]]:
        """Return the stored records of a session from a position. The header is at 0."""
        return [record.value for record in await self.store.read(self._stream(session), start=start)]

    def redacted(self, entry: Entry) -> tuple[Entry, dict[str, Any]]:
        """Return the entry without secrets, to be stored and shown to models, and its record."""
        return (entry, record_of(entry)) if self.redact is None else redacted(entry, self.redact)

    async def append(self, session: str, records: Sequence[Mapping[str, Any]]) -> None:
        """Append records atomically. They survive the end of the process; ``Store.sync`` brings them to disk."""
        await self.store.append(self._stream(session), records, durable=False)

    async def describe(self, info: SessionInfo, records: int, *, settled: bool) -> None:
        """Write the document.

        Args:
            info: the summary.
            records: the number of records that it covers.
            settled: whether it is complete and the session has no writer.
        """
        await self.store.put(_KEYS + info.id, _document(info, records, settled=settled), durable=False)

    async def delete(self, session: str) -> None:
        """Remove a session and its documents under ``session/ID/``."""
        async with self.store.transaction() as transaction:
            await delete_within(transaction, f"{self._stream(session)}/")
            await transaction.delete(_KEYS + session)
            await transaction.delete_stream(self._stream(session))

    async def within(self, session: str) -> set[str]:
        """Return the ids of the sessions of child agents, and of their own children."""
        keys = await self.store.keys(f"{self._stream(session)}/")
        return {key.rpartition(f"/{_KEYS}")[2] for key in keys if f"/{_KEYS}" in key}

    async def exists(self, session: str) -> bool:
        """Return whether a session with this id exists."""
        return bool(await self.store.read(self._stream(session), limit=1))

    async def infos(self) -> list[SessionInfo]:
        """Return the summaries of all sessions."""
        keys = await self.store.keys(_KEYS)
        found = [await self._info(key.removeprefix(_KEYS)) for key in keys]
        return [info for info in found if info is not None]

    async def contains(self, info: SessionInfo, text: str) -> bool:
        """Return whether a text occurs in the name or the messages of a session.

        Args:
            info: the session.
            text: the text, case-folded.
        """
        if text in (info.name or "").casefold():
            return True
        return any(text in one.casefold() for record in await self.since(info.id, 1) for one in _texts(record))

    async def _info(self, session: str) -> SessionInfo | None:
        document = await self.store.get(_KEYS + session)
        if document is None:  # removed meanwhile
            return None
        records, stored_info = document.value.get("records"), document.value.get("info")
        info = read_info(stored_info) if isinstance(stored_info, Mapping) else None
        if info is None or info.id != session or not isinstance(records, int):
            try:
                stored = await self.read(session)
            except SessionTooNew:
                return SessionInfo(session)  # opening it reports the error; lists must not fail
            return stored.info if stored else None
        if document.value.get("settled") is True:
            return info
        return update_info(info, await self.since(session, records))

    def _stream(self, session: str) -> str:
        return f"session/{session}"


async def delete_within(transaction: Transaction, beginning: str) -> None:
    """Delete all documents whose key begins like this, with the streams of those that describe a session."""
    for key in await transaction.keys(beginning):
        await transaction.delete(key)
        folder, found, session = key.rpartition(f"/{_KEYS}")
        if found:
            await transaction.delete_stream(f"{folder}/session/{session}")


def _texts(record: Mapping[str, Any]) -> list[str]:
    message = record.get("message")
    return texts_of(message) if isinstance(message, Mapping) else []


def _document(info: SessionInfo, records: int, *, settled: bool) -> dict[str, Any]:
    return {"info": info.as_dict(), "records": records, "settled": settled}
