"""Read the ledger: the last entries, one effect, or all matching effects."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Literal

from anyio import to_thread
from attrs import evolve

from ._entries import EffectRecord, LedgerEntry, Status
from ._errors import LedgerIndexFailed
from ._index import Filter, Index, Row, open_index
from ._lines import LineInvalid, parse
from ._segments import line_at, lines_backwards, segment_numbers


async def tail(
    folder: Path, count: int = 20, *, after: int = 0, without: frozenset[str] = frozenset()
) -> tuple[LedgerEntry, ...]:
    """Return the last entries, oldest first, without using the index.

    Args:
        folder: the ledger's folder.
        count: the maximum number of entries.
        after: return only entries with a higher number. A caller that follows the ledger passes the last one it has.
        without: the kinds of entries to leave out.
    """
    return await to_thread.run_sync(_tail, folder, count, after, without)


async def find(folder: Path, effect: str) -> EffectRecord | None:
    """Return the record of one effect, or ``None``."""
    found = await query(folder, effect=effect, limit=1)
    return found[0] if found else None


async def loads(
    folder: Path,
    *,
    plugin: str | None = None,
    host: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    text: str | None = None,
    limit: int = 100,
) -> tuple[LedgerEntry, ...]:
    """Return the entries about loads of plugins that match all given filters, newest first. Reads it backwards.

    Args:
        folder: the ledger's folder.
        plugin: a plugin, as ``kind.name``.
        host: a host, whose id is the part of its effects' ids before the last ``-``.
        since: the earliest time, inclusive.
        until: the latest time, exclusive.
        text: a literal string in the entry.
        limit: the maximum number of entries.
    """
    earliest, latest = _utc(since) or "", _utc(until) or "9"
    wanted = b"" if text is None else _literal(text)

    def found() -> Iterator[LedgerEntry]:
        for raw, entry in _loads(folder, host):
            if entry.time < earliest:
                return
            if plugin in (None, entry.fields.get("plugin")) and entry.time < latest and wanted in raw:
                yield entry

    return await to_thread.run_sync(lambda: tuple(islice(found(), limit)))


def _loads(folder: Path, host: str | None) -> Iterator[tuple[bytes, LedgerEntry]]:
    """Yield the entries about loads, newest first; with a host, until the entry with which it began."""
    for raw in lines_backwards(folder, b'"kind":"load"' if host is None else _literal(host)):
        entry = _entry(raw)
        if entry is None or host not in (None, entry.fields.get("host")):
            continue
        if entry.kind == "load":
            yield raw, entry
        elif entry.kind == "open" and host is not None:
            return


def _literal(text: str) -> bytes:
    """Return a text as it is in a line."""
    return json.dumps(text)[1:-1].encode("ascii")


async def query(
    folder: Path,
    *,
    op: str | None = None,
    skill: str | None = None,
    status: Status | Literal["open"] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    effect: str | None = None,
    key: str | None = None,
    under: str | None = None,
    principal: str | None = None,
    session: str | None = None,
    run: str | None = None,
    step: str | None = None,
    parent: str | None = None,
    tool: str | None = None,
    text: str | None = None,
    limit: int = 100,
) -> tuple[EffectRecord, ...]:
    """Return the effects that match all given filters, newest first.

    The index, which running hosts update in the background, is updated first (about 10 µs per line).

    Args:
        folder: the ledger's folder.
        op: an op (``http.get``) or a family (``http``).
        skill: a skill (``github``) or one of its tools (``github.stars``).
        status: the outcome, or ``open`` for effects without a recorded outcome.
        since: the earliest start time, inclusive.
        until: the latest start time, exclusive.
        effect: the id of the effect.
        key: the idempotency key.
        under: the beginning of the idempotency key, such as that of a call and ``:``.
        principal: the principal of the effect.
        session: the session of an agent.
        run: a run of an agent, or the id of a call that was not made by an agent.
        step: a model step of a run (``0``) with all its calls, or one of its calls (``0.1``).
        parent: the tool call that started a child agent, ``session:run:step``.
        tool: a tool, by its name in agents (``memory``, ``github.stars``) or in its skill (``stars``).
        text: a literal string in one of the effect's lines. This filter reads the ledger backwards instead of the
            index.
        limit: the maximum number of effects.

    Raises:
        LedgerIndexFailed: if the index cannot be built, for example because of a full disk or missing permissions.
    """
    exact = {"effect": effect, "key": key, "principal": principal, "session": session, "run": run, "parent": parent}
    start, end = _utc(since), _utc(until)
    wanted = Filter(
        op=op, skill=skill, tool=tool, step=step, status=status, since=start, until=end, under=under, exact=exact
    )
    if not await to_thread.run_sync(segment_numbers, folder):
        return ()
    try:
        return await _search(folder, wanted, text, limit)
    except sqlite3.DatabaseError:
        pass
    try:
        # The index is damaged or belongs to another ledger. Rebuild it from the ledger.
        await to_thread.run_sync(Index.remove, folder)
        return await _search(folder, wanted, text, limit)
    except (sqlite3.Error, OSError) as error:
        raise LedgerIndexFailed(Index.path(folder), str(error)) from error


async def _search(folder: Path, wanted: Filter, text: str | None, limit: int) -> tuple[EffectRecord, ...]:
    async with open_index(folder) as index:
        steps = index.catch_up()
        while await to_thread.run_sync(next, steps, False):
            pass
        return await to_thread.run_sync(_select, index, wanted, text, limit)


def _select(index: Index, wanted: Filter, text: str | None, limit: int) -> tuple[EffectRecord, ...]:
    rows = index.rows(wanted, limit) if text is None else islice(_rows_with(index, wanted, text), limit)
    return tuple(record_at(index.folder, row) for row in rows)


def _rows_with(index: Index, wanted: Filter, text: str) -> Iterator[Row]:
    """Yield the row of each effect with ``text`` in a line, once, in the order of the newest matching line."""
    needle = _literal(text)
    seen = set()
    for raw in lines_backwards(index.folder, needle):
        entry = _entry(raw)
        effect = entry.fields.get("effect") if entry else None
        if not isinstance(effect, str) or not effect or effect in seen:
            continue
        if wanted.exact["effect"] in {None, effect}:
            seen.add(effect)
            yield from index.rows(evolve(wanted, exact={**wanted.exact, "effect": effect}), 1)


def record_at(folder: Path, row: Row) -> EffectRecord:
    """Return the record of the effect with these lines.

    Raises:
        sqlite3.DatabaseError: if there are other lines.
    """
    found = [_entry(line_at(folder, place.segment, place.offset) or b"") for place in row.places]
    entries = tuple(entry for entry in found if entry and entry.fields.get("effect") == row.effect)
    if len(entries) < len(found):
        raise sqlite3.DatabaseError("the index does not match the ledger")
    return EffectRecord.from_entries(entries)


def _tail(folder: Path, count: int, after: int, without: frozenset[str]) -> tuple[LedgerEntry, ...]:
    found: list[LedgerEntry] = []
    for raw in lines_backwards(folder):
        entry = _entry(raw)
        if entry is None or entry.kind in without:
            continue
        if len(found) == count or entry.seq <= after:
            break
        found.append(entry)
    return tuple(reversed(found))


def _entry(raw: bytes) -> LedgerEntry | None:
    """Return the entry that these bytes encode, or ``None`` if they are invalid."""
    with suppress(LineInvalid):
        return LedgerEntry.from_line(parse(raw))
    return None


def _utc(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="microseconds")
