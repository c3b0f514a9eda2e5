"""The index: the positions of each effect in the segments. It is derived data and can be deleted at any time.

Effects do not update it. Hosts update it in the background, and each query updates it first, in batches of some
thousand lines. It is read on the event loop too, so that readers must not wait for writers: it has a write-ahead log.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from anyio import CancelScope, to_thread
from attrs import define, field, frozen

from ._lines import LineInvalid, hashed_part
from ._segments import Mark, line_at, lines_from

_LINES_PER_STEP = 10_000
_FORMAT = 3
_BUSY_SECONDS = 10.0
_SCHEMA = f"""
    CREATE TABLE IF NOT EXISTS position (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        segment INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL, digest TEXT NOT NULL
    );
    CREATE TABLE IF NOT EXISTS effects (
        id INTEGER PRIMARY KEY,
        effect TEXT NOT NULL UNIQUE,
        time TEXT NOT NULL,
        family TEXT NOT NULL, op TEXT NOT NULL,
        skill TEXT, tool TEXT, principal TEXT, session TEXT, run TEXT, step TEXT, parent TEXT, key TEXT,
        status TEXT,
        first_segment INTEGER NOT NULL, first_offset INTEGER NOT NULL,
        last_segment INTEGER, last_offset INTEGER
    );
    CREATE INDEX IF NOT EXISTS effects_time ON effects (time);
    CREATE INDEX IF NOT EXISTS effects_family ON effects (family, time);
    CREATE INDEX IF NOT EXISTS effects_op ON effects (op, time);
    CREATE INDEX IF NOT EXISTS effects_skill ON effects (skill, time);
    CREATE INDEX IF NOT EXISTS effects_tool ON effects (tool, time) WHERE tool IS NOT NULL;
    CREATE INDEX IF NOT EXISTS effects_session ON effects (session, time) WHERE session IS NOT NULL;
    CREATE INDEX IF NOT EXISTS effects_run ON effects (run, step) WHERE run IS NOT NULL;
    CREATE INDEX IF NOT EXISTS effects_parent ON effects (parent, time) WHERE parent IS NOT NULL;
    CREATE INDEX IF NOT EXISTS effects_principal ON effects (principal, time);
    CREATE INDEX IF NOT EXISTS effects_status ON effects (status, time);
    CREATE INDEX IF NOT EXISTS effects_key ON effects (key, principal) WHERE key IS NOT NULL;
    PRAGMA user_version = {_FORMAT};
"""
_INSERT = """
    INSERT INTO effects (effect, time, family, op, skill, tool, principal, session, run, step, parent, key, status,
        first_segment, first_offset, last_segment, last_offset)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (effect) DO UPDATE SET
        status = COALESCE(excluded.status, status),
        key = COALESCE(key, excluded.key),
        last_segment = COALESCE(excluded.last_segment, excluded.first_segment),
        last_offset = COALESCE(excluded.last_offset, excluded.first_offset)
"""
_LATEST = """
    SELECT position.segment, position.end, effect, first_segment, first_offset, last_segment, last_offset
    FROM position LEFT JOIN effects ON id = (SELECT id FROM effects WHERE key = ?{} ORDER BY id DESC LIMIT 1)
"""
_LATEST_OF_ANY, _LATEST_OF_ONE = _LATEST.format(""), _LATEST.format(" AND principal = ?")
_KEY, _STATUS, _LAST = 11, 12, 15
_KINDS = frozenset({"intent", "note", "outcome"})
_ORIGIN = ("skill", "tool", "principal", "session", "run", "step", "parent")


@frozen
class Row:
    """The positions of an effect's lines: of the first one, and of the last one if there are several."""

    effect: str
    places: tuple[Mark, ...]


@frozen(kw_only=True)
class Filter:
    """The conditions that effects must meet. ``None`` matches any value.

    Args:
        under: the beginning of the key.
        exact: the required value of each of these columns.
    """

    op: str | None
    skill: str | None
    tool: str | None
    step: str | None
    status: str | None
    since: str | None
    until: str | None
    under: str | None
    exact: Mapping[str, str | None]

    def conditions(self) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield SQL conditions, each with its parameters."""
        if self.op is not None:
            yield "op = ?" if "." in self.op else "family = ?", (_text(self.op),)
        if self.skill is not None:
            skill, _, tool = self.skill.partition(".")
            yield "skill = ?", (_text(skill),)
            if tool:
                yield "tool = ?", (_text(tool),)
        if self.tool is not None:
            skill, _, tool = self.tool.rpartition(".")
            yield "(tool = ? OR (skill = ? AND tool = ?))", (_text(self.tool), _text(skill), _text(tool))
        if self.step is not None:
            # The calls of a step start with the step and a dot (`0.1`). `/` is the character after the dot.
            step = _text(self.step)
            yield "(step = ? OR (step > ? AND step < ?))", (step, f"{step}.", f"{step}/")
        if self.status is not None:
            yield ("status IS NULL", ()) if self.status == "open" else ("status = ?", (self.status,))
        if self.since is not None:
            yield "time >= ?", (self.since,)
        if self.until is not None:
            yield "time < ?", (self.until,)
        if self.under:
            yield "key >= ? AND key < ?", (self.under, f"{self.under[:-1]}{chr(ord(self.under[-1]) + 1)}")
        for column, value in self.exact.items():
            if value is not None:
                yield f"{column} = ?", (_text(value),)


@frozen
class _Position:
    """The position and the digest of the last indexed line."""

    segment: int = 1
    start: int = 0
    end: int = 0
    digest: str = ""

    def holds(self, folder: Path) -> bool:
        """Return whether the ledger still contains that line."""
        if self.end == 0:
            return True
        raw = line_at(folder, self.segment, self.start)
        return raw is not None and self.start + len(raw) + 1 == self.end and sha256(raw).hexdigest() == self.digest


@define
class Index:
    """The open index of a ledger's folder. Use it from one thread at a time."""

    folder: Path
    _database: sqlite3.Connection = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._database = sqlite3.connect(
            self.path(self.folder), isolation_level=None, check_same_thread=False, timeout=_BUSY_SECONDS
        )
        try:
            self._prepare()
        except BaseException:
            self._database.close()
            raise

    @staticmethod
    def path(folder: Path) -> Path:
        """Return the path of the index file."""
        return folder / "index.sqlite"

    @classmethod
    def remove(cls, folder: Path) -> None:
        """Delete the index. The next query rebuilds it."""
        for suffix in ("", "-journal", "-wal", "-shm"):
            cls.path(folder).with_name(f"index.sqlite{suffix}").unlink(missing_ok=True)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def catch_up(self, lines: int = _LINES_PER_STEP) -> Iterator[bool]:
        """Index all new lines, and yield ``True`` after each batch of so many lines.

        Raises:
            sqlite3.DatabaseError: if the index is damaged or does not match the ledger.
        """
        if not self._position().holds(self.folder):
            raise sqlite3.DatabaseError("the index does not belong to this ledger")
        while self._step(lines):
            yield True
        # Update the statistics with which SQLite chooses the most selective index.
        self._database.execute("PRAGMA analysis_limit = 400")
        self._database.execute("PRAGMA optimize")

    def hasten(self) -> None:
        """Never wait for other processes from now on, because the index is used on the event loop."""
        self._database.execute("PRAGMA busy_timeout = 0")

    def position(self) -> Mark:
        """Return the position after the last indexed line."""
        position = self._position()
        return Mark(position.segment, position.end)

    def latest(self, key: str, principal: str | None) -> tuple[Mark, Row | None]:
        """Return the position after the last indexed line, and the last effect with this key.

        Args:
            key: the key.
            principal: the principal of the effect, or ``None`` for any.
        """
        wanted = (
            (_LATEST_OF_ANY, (_text(key),)) if principal is None else (_LATEST_OF_ONE, (_text(key), _text(principal)))
        )
        # Read all rows, so that the statement does not hold a snapshot of the database.
        found = self._database.execute(*wanted).fetchall()
        if not found:
            return Mark(), None
        segment, end, *place = found[0]
        return Mark(segment, end), None if place[0] is None else _as_row(*place)

    def rows(self, wanted: Filter, limit: int) -> list[Row]:
        """Return the positions of the newest matching effects, newest first."""
        conditions, values = ["1"], list[Any]()
        for condition, given in wanted.conditions():
            conditions.append(condition)
            values += given
        found = self._database.execute(
            "SELECT effect, first_segment, first_offset, last_segment, last_offset FROM effects "  # noqa: S608 -- ours
            f"WHERE {' AND '.join(conditions)} ORDER BY time DESC, id DESC LIMIT ?",
            (*values, limit),
        )
        return [_as_row(*one) for one in found]

    def _prepare(self) -> None:
        self.path(self.folder).chmod(0o600)
        version = self._database.execute("PRAGMA user_version").fetchone()[0]
        if version not in {0, _FORMAT}:
            raise sqlite3.DatabaseError(f"unsupported index format {version}")
        # A power failure may undo the last batches, but a batch and its position stay together.
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        # Temporary files would need space in `/tmp`, and remain open.
        self._database.execute("PRAGMA temp_store = MEMORY")
        if not version:
            self._database.executescript(_SCHEMA)

    def _position(self) -> _Position:
        row = self._database.execute("SELECT segment, start, end, digest FROM position").fetchone()
        return _Position(*row) if row else _Position()

    def _step(self, lines: int) -> bool:
        """Index the next batch of lines and return whether there may be more."""
        position = self._position()
        found = list(islice(lines_from(self.folder, position.segment, position.end), lines))
        if not found:
            return False
        rows = _rows(found)
        segment, start, raw = found[-1]
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            if self._position() != position:
                return True  # another process has indexed more lines
            self._database.executemany(_INSERT, rows)
            self._database.execute(
                "INSERT OR REPLACE INTO position (one, segment, start, end, digest) VALUES (1, ?, ?, ?, ?)",
                (segment, start, start + len(raw) + 1, sha256(raw).hexdigest()),
            )
        return len(found) == lines


@asynccontextmanager
async def open_index(folder: Path) -> AsyncIterator[Index]:
    """Open the index of a ledger, and close it in a thread: the last connection that is closed syncs it to disk."""
    index = await to_thread.run_sync(Index, folder)
    try:
        yield index
    finally:
        with CancelScope(shield=True):
            await to_thread.run_sync(index.close)


def _as_row(effect: str, segment: int, offset: int, last: int | None, last_offset: int) -> Row:
    first = Mark(segment, offset)
    return Row(effect, (first,) if last is None else (first, Mark(last, last_offset)))


def _rows(lines: Sequence[tuple[int, int, bytes]]) -> list[list[str | int | None]]:
    """Return the index rows of these lines, one for each effect. Other lines, also unreadable ones, are skipped."""
    rows: dict[Any, list[str | int | None]] = {}
    for segment, start, raw in lines:
        with suppress(LineInvalid, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            fields = json.loads(hashed_part(raw)[0].decode("ascii"))
            if fields["kind"] not in _KINDS:
                continue
            row = rows.get(fields["effect"])
            if row is None:
                rows[fields["effect"]] = [*_columns(fields), segment, start, None, None]
            else:
                row[_KEY] = _text(fields.get("key")) if row[_KEY] is None else row[_KEY]
                row[_STATUS] = _text(fields.get("status")) or row[_STATUS]
                row[_LAST:] = segment, start
    return list(rows.values())


def _columns(fields: Mapping[str, Any]) -> list[str | None]:
    """Return the values of a line in the order of the columns up to ``status``."""
    op, origin = fields["op"], fields.get("origin", {})
    values = [fields["effect"], fields["time"], op.partition(".")[0], op]
    values += [*map(origin.get, _ORIGIN), fields.get("key"), fields.get("status")]
    return [None if value is None else _text(value) for value in values]


def _text(value: Any) -> str | None:
    """Return the value as text for SQLite, with lone surrogates replaced."""
    if value is None or (isinstance(value, str) and value.isascii()):
        return value
    return str(value).encode("utf-8", "replace").decode()
