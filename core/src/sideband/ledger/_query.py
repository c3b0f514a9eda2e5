"""Reading the record: the last entries, one effect, or all effects that fit."""

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
from ._index import Filter, Index, Row
from ._lines import LineInvalid, parse
from ._segments import line_at, lines_backwards, segment_numbers


async def tail(folder: Path, count: int = 20, *, after: int = 0) -> tuple[LedgerEntry, ...]:
    """The last entries, oldest first. Needs no index.

    Args:
        folder: the ledger's folder.
        count: how many at most.
        after: only entries with a higher number, so that whoever follows a ledger gets each once.
    """
    return await to_thread.run_sync(_tail, folder, count, after)


async def find(folder: Path, effect: str) -> EffectRecord | None:
    """Everything that the ledger says about one effect, or ``None``."""
    found = await query(folder, effect=effect, limit=1)
    return found[0] if found else None


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
    principal: str | None = None,
    session: str | None = None,
    run: str | None = None,
    step: str | None = None,
    parent: str | None = None,
    tool: str | None = None,
    text: str | None = None,
    limit: int = 100,
) -> tuple[EffectRecord, ...]:
    """The effects that fit all that is asked for, newest first.

    The first query after many effects takes a while, since it brings the index up to date, at some
    20 µs a line.

    Args:
        folder: the ledger's folder.
        op: an op (``http.get``) or a family (``http``).
        skill: a skill (``github``) or a tool of it (``github.stars``).
        status: how it ended; ``open`` is for those of which the ledger does not say.
        since: began at this time or later.
        until: began before this time.
        effect: its id.
        key: its idempotency key.
        principal: on whose behalf.
        session: an agent's session.
        run: a run of an agent; the id of a call that no agent asked for.
        step: a model step of a run (``0``) with all that it led to, or one call of it (``0.1``).
        parent: the tool call that a child agent works for, ``session:run:step``.
        tool: a tool: as agents know it (``memory``, ``github.stars``), or as its skill does (``stars``).
        text: stands literally in one of its lines. This one reads the ledger from its end, not the index.
        limit: how many at most.

    Raises:
        LedgerIndexFailed: the index can't be built, for lack of room or rights.
    """
    exact = {"effect": effect, "key": key, "principal": principal, "session": session, "run": run, "parent": parent}
    start, end = _utc(since), _utc(until)
    wanted = Filter(op=op, skill=skill, tool=tool, step=step, status=status, since=start, until=end, exact=exact)
    if not await to_thread.run_sync(segment_numbers, folder):
        return ()
    try:
        return await _search(folder, wanted, text, limit)
    except sqlite3.DatabaseError:
        pass
    try:
        # Damaged, or of another ledger: it holds nothing of its own.
        await to_thread.run_sync(Index.remove, folder)
        return await _search(folder, wanted, text, limit)
    except (sqlite3.Error, OSError) as error:
        raise LedgerIndexFailed(Index.path(folder), str(error)) from error


async def _search(folder: Path, wanted: Filter, text: str | None, limit: int) -> tuple[EffectRecord, ...]:
    index = await to_thread.run_sync(Index, folder)
    try:
        steps = index.catch_up()
        while await to_thread.run_sync(next, steps, False):
            pass
        return await to_thread.run_sync(_select, index, wanted, text, limit)
    finally:
        index.close()


def _select(index: Index, wanted: Filter, text: str | None, limit: int) -> tuple[EffectRecord, ...]:
    rows = index.rows(wanted, limit) if text is None else islice(_rows_with(index, wanted, text), limit)
    return tuple(_record(index.folder, row) for row in rows)


def _rows_with(index: Index, wanted: Filter, text: str) -> Iterator[Row]:
    """The rows of effects that have ``text`` in a line, newest line first, each once."""
    needle = json.dumps(text)[1:-1].encode("ascii")
    seen = set()
    for raw in lines_backwards(index.folder, needle):
        entry = _entry(raw)
        effect = entry.fields.get("effect") if entry else None
        if not isinstance(effect, str) or not effect or effect in seen:
            continue
        if wanted.exact["effect"] in {None, effect}:
            seen.add(effect)
            yield from index.rows(evolve(wanted, exact={**wanted.exact, "effect": effect}), 1)


def _record(folder: Path, row: Row) -> EffectRecord:
    found = [_entry(line_at(folder, segment, start) or b"") for segment, start in row.places]
    entries = tuple(entry for entry in found if entry and entry.fields.get("effect") == row.effect)
    if len(entries) < len(found):
        raise sqlite3.DatabaseError("it says something else than the ledger")
    return EffectRecord.from_entries(entries)


def _tail(folder: Path, count: int, after: int) -> tuple[LedgerEntry, ...]:
    found: list[LedgerEntry] = []
    for raw in lines_backwards(folder):
        entry = _entry(raw)
        if entry is None:
            continue
        if len(found) == count or entry.seq <= after:
            break
        found.append(entry)
    return tuple(reversed(found))


def _entry(raw: bytes) -> LedgerEntry | None:
    """The entry that these bytes are, if they are one."""
    with suppress(LineInvalid):
        return LedgerEntry.from_line(parse(raw))
    return None


def _utc(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="microseconds")
