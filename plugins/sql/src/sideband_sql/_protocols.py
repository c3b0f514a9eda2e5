"""The protocols that a database engine implements, and the data that the ops exchange with it.

Ops, result limits, threads, grants and records use only these. A driver opens a target, read-only or for changes,
confined so that statements cannot access anything else, and maps every failure to one of the family's errors.
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
    """The rows of one statement, read lazily."""

    @property
    def columns(self) -> Sequence[str]:
        """The column names, in order; empty if the statement does not return rows."""

    def __iter__(self) -> Iterator[Sequence[Any]]:
        """Iterate over the remaining rows.

        Raises:
            SqlError: if reading a row fails.
        """


@frozen
class Changed:
    """The changes of one statement.

    Args:
        affected: the number of rows inserted, updated or deleted.
        rowid: the rowid of the last inserted row, if the engine has rowids.
        columns: the column names of the `RETURNING` clause.
        rows: all rows of the `RETURNING` clause.
    """

    affected: int
    rowid: int | None
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()


@frozen
class Inverse:
    """The inverse of the changes of a transaction.

    Args:
        changes: the inverse in the engine's own format; empty if there is nothing to revert.
        rows: the number of rows that it affects.
        remains: sentences that describe what cannot be undone.
    """

    changes: bytes = b""
    rows: int = 0
    remains: tuple[str, ...] = ()


class DatabaseSession(Protocol):
    """An open database.

    All methods except ``stop`` block, and are called inside ``running`` by one thread at a time.
    """

    def running(self) -> AbstractContextManager[None]:
        """Return a context that interrupts its body after `max_seconds`."""

    def stop(self) -> None:
        """Interrupt the running statement and reject later ones. May be called repeatedly and from any thread."""

    def select(self, sql: str, params: Bindings) -> QueryAnswer:
        """Start a statement that returns rows and changes nothing."""

    def change(self, sql: str, params: Bindings) -> Changed:
        """Run one statement in the open transaction."""

    def change_many(self, sql: str, rows: Sequence[Bindings]) -> int:
        """Run one statement for each row in the open transaction, and return the number of affected rows."""

    def transaction(self, *, keep: bool = True) -> AbstractContextManager[None]:
        """Return a context that commits its body as one transaction if ``keep`` is set, and otherwise rolls it back."""

    def identities(self) -> list[str]:
        """Return what identifies the folder of the database and its file."""

    def watch_changes(self) -> None:
        """Start recording the changes of the transaction for ``inverse``."""

    def inverse(self) -> Inverse:
        """Return the inverse of all changes since ``watch_changes``."""

    def revert(self, changes: bytes) -> int:
        """Apply an inverse, and return the number of affected rows.

        Raises:
            SqlConflict: if an affected row was changed since.
        """

    def mark(self, effect: str) -> bool:
        """Record the effect in the same transaction. Return whether the database supports it."""

    def is_marked(self, effect: str) -> bool | None:
        """Return whether the effect was committed, or ``None`` if it is unknown."""

    def close(self) -> None:
        """Close the session and roll back uncommitted changes."""


class DatabaseDriver(Protocol):
    """Opens databases of one engine."""

    def open(
        self, target: DatabaseTarget, attached: Mapping[str, DatabaseTarget], config: Config, *, changes: bool
    ) -> DatabaseSession:
        """Open the target, and attach the others read-only under their aliases.

        Raises:
            SqlError: if a database cannot be opened.
        """
