"""One SQLite connection for one op: opened read-only or for changes, confined, watched, and closed.

Everything here blocks and runs in a worker thread of anyio. The watch stops a statement that runs too long or whose
dispatch was cancelled; waiting for another connection's lock is a loop of short tries, so that it can be stopped too.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from anyio import from_thread
from attrs import define, field

from . import _functions
from ._authorizer import Policy
from ._config import Config
from ._errors import SqlTimeout
from ._failures import is_busy, is_interrupted, typed_error
from ._paths import Target

__all__ = ["Session", "open_session"]

T = TypeVar("T")

_STEPS_BETWEEN_CHECKS = 2000
_SECONDS_BETWEEN_TRIES = 0.01
_LIMITS = {
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1024 * 1024,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    # the time of one LIKE is the product of pattern and text, and can't be interrupted
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 50,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 32_766,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 1_000_000,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}


@define
class Session:
    """An open, confined connection.

    Args:
        connection: in autocommit mode; statements of its user can neither begin nor end a transaction.
        target: the database it is for.
        config: the limits.
        policy: what its statements may do.
    """

    connection: sqlite3.Connection
    target: Target
    config: Config
    policy: Policy
    _ends: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._ends = time.monotonic() + self.config.max_seconds

    def watch(self) -> bool:
        """SQLite's progress callback: whether to stop. An exception stops too, and `failures` raises it again."""
        from_thread.check_cancelled()
        return time.monotonic() > self._ends

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Raise what goes wrong inside as cancellation, or as a typed error."""
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError) as error:
            if self.policy.refusal is not None:
                raise self.policy.refusal from None
            if isinstance(error, sqlite3.Error) and is_interrupted(error):
                from_thread.check_cancelled()
                raise SqlTimeout(self.config.max_seconds) from None
            raise typed_error(error, self.target.name, self.config.busy_seconds) from None

    @contextmanager
    def statements(self) -> Iterator[None]:
        """Statements of the user run inside: authorised, each error typed."""
        self.policy.forget()
        self.connection.set_authorizer(self.policy)
        try:
            with self.failures():
                yield
        finally:
            self.connection.set_authorizer(None)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing: the lock for writing is taken first, so that no later statement can find it taken."""
        with self.failures():
            self.when_free(lambda: self.connection.execute("BEGIN IMMEDIATE"))
        try:
            yield
            # past this point a cancelled dispatch would leave its change behind
            from_thread.check_cancelled()
            with self.failures():
                self.when_free(lambda: self.connection.execute("COMMIT"))
        finally:
            # a statement may have rolled back by itself (INSERT OR ROLLBACK)
            if self.connection.in_transaction:
                self.connection.set_progress_handler(None, 0)
                self.connection.execute("ROLLBACK")

    def when_free(self, action: Callable[[], T]) -> T:
        """Do it as soon as no other connection is in the way, for as long as the configuration waits."""
        gives_up = time.monotonic() + self.config.busy_seconds
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > gives_up:
                    raise
            from_thread.check_cancelled()
            time.sleep(_SECONDS_BETWEEN_TRIES)


@contextmanager
def open_session(target: Target, attached: Mapping[str, Target], config: Config, *, changes: bool) -> Iterator[Session]:
    """Open the database, attach the others read-only, and confine what statements can do.

    Raises:
        SqlError: it can't be opened.
    """
    policy = Policy(changes=changes)
    try:
        connection = sqlite3.connect(
            f"{target.file.as_uri()}?mode={'rw' if changes else 'ro'}",
            uri=True,
            isolation_level=None,  # the transactions are ours
            timeout=0,  # so is the waiting
            cached_statements=0,  # each statement meets the authorizer
            check_same_thread=True,
        )
    except sqlite3.Error as error:
        raise typed_error(error, target.name, config.busy_seconds) from None
    try:
        session = Session(connection, target, config, policy)
        with session.failures():
            _confine(session, attached)
        yield session
    finally:
        connection.close()


def _confine(session: Session, attached: Mapping[str, Target]) -> None:
    connection, config = session.connection, session.config
    for limit, value in _LIMITS.items():
        connection.setlimit(limit, value)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, config.max_value_bytes)
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
    # `trusted_schema` stays on: switched off, views and triggers could not use the functions installed here. What it
    # guards against, a schema that calls dangerous functions, the authorizer refuses in views and triggers as well.
    _functions.install(connection, config.max_value_bytes)
    connection.execute("PRAGMA cell_size_check = ON")
    for alias, target in attached.items():
        connection.execute(f'ATTACH DATABASE ? AS "{alias}"', (f"{target.file.as_uri()}?mode=ro",))
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, len(attached))
    connection.set_progress_handler(session.watch, _STEPS_BETWEEN_CHECKS)
    if session.policy.changes:
        _prepare_for_changes(session)
    else:
        connection.execute("PRAGMA query_only = ON")


def _prepare_for_changes(session: Session) -> None:
    connection = session.connection
    connection.execute("PRAGMA foreign_keys = ON")
    if session.target.managed:
        # only where the file is ours: the journal mode stays with the file
        session.when_free(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
    (page_size,) = session.when_free(lambda: connection.execute("PRAGMA page_size").fetchone())
    connection.execute(f"PRAGMA max_page_count = {max(1, session.config.max_database_bytes // page_size)}").fetchone()
