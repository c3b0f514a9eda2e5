"""The protocols that a database engine implements, and the data that the ops exchange with it.

Ops, limits on results, threads, rights and records use only these. A driver opens a target, read-only or for changes,
confined so that statements reach nothing else, and reports every failure as one of the family's errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from attrs import frozen

from ._config import Config
from ._paths import DatabaseTarget

Bindings = Mapping[str, Any] | Sequence[Any]


class QueryAnswer(Protocol):
    """The rows of one statement, read as they are iterated over."""

    @property
    def columns(self) -> Sequence[str]:
        """Their names, in order; none if it is no statement that answers rows."""

    def __iter__(self) -> Iterator[Sequence[Any]]:
        """The rows that have not been read yet.

        Raises:
            SqlError: what goes wrong on the way.
        """


@frozen
class Changed:
    """What one statement changed.

    Args:
        affected: how many rows it inserted, updated or deleted.
        rowid: of the last row that it inserted, where the engine has such a thing.
        answer: what its `RETURNING` clause answered, complete.
    """

    affected: int
    rowid: int | None
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()


@frozen
class Inverse:
    """What takes the changes of a transaction back.

    Args:
        changes: in the engine's own form; empty if there is nothing to take back.
        rows: how many rows that are.
        remains: in sentences, what of it can't be taken back.
    """

    changes: bytes = b""
    rows: int = 0
    remains: tuple[str, ...] = ()


class DatabaseSession(Protocol):
    """An open database.

    Everything except ``stop`` blocks, and is called in one thread at a time, inside ``running``.
    """

    def running(self) -> AbstractContextManager[None]:
        """The time of `max_seconds` begins; what runs inside may run as long."""

    def stop(self) -> None:
        """End what runs now, and what is begun afterwards, as soon as possible. Called in any thread, repeatedly."""

    def select(self, sql: str, params: Bindings) -> QueryAnswer:
        """Begin a statement that answers rows, and changes nothing."""

    def change(self, sql: str, params: Bindings) -> Changed:
        """Run one statement in the open transaction."""

    def change_many(self, sql: str, rows: Sequence[Bindings]) -> int:
        """Run one statement for each row in the open transaction, and answer how many rows it affected."""

    def transaction(self, *, keep: bool = True) -> AbstractContextManager[None]:
        """All or nothing; nothing in any case unless ``keep``."""

    def watch_changes(self) -> None:
        """From here on, notice what the transaction changes, so that ``inverse`` can tell."""

    def inverse(self) -> Inverse:
        """What takes back what was changed since ``watch_changes``."""

    def revert(self, changes: bytes) -> int:
        """Apply what ``inverse`` said, and answer how many rows it affected.

        Raises:
            SqlConflict: what it would take back was changed since.
        """

    def mark(self, effect: str) -> bool:
        """Note in the same transaction that this effect happens; ``False`` where that is not done."""

    def is_marked(self, effect: str) -> bool | None:
        """Whether the effect happened; ``None`` if that can't be told."""

    def close(self) -> None:
        """Close it. What was not committed is gone."""


class DatabaseDriver(Protocol):
    """Opens databases of one engine."""

    def open(
        self, target: DatabaseTarget, attached: Mapping[str, DatabaseTarget], config: Config, *, changes: bool
    ) -> DatabaseSession:
        """Open the target, and the others to read under their aliases.

        Raises:
            SqlError: it can't be opened.
        """
