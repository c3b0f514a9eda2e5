"""Opens SQLite databases with the library that is bundled with `apsw`, and confines their statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import apsw
from attrs import frozen

from .._config import Config
from .._paths import DatabaseTarget, pinned_folder
from . import _functions
from ._authorizer import MODULES, Authorizer
from ._failures import FAILURES, refusal, typed_error
from ._session import SqliteSession
from ._system_calls import AllowedDatabase, allow_only, open_close_lock

_STEPS_BETWEEN_CHECKS = 10_000
_LIMITS = {
    apsw.SQLITE_LIMIT_SQL_LENGTH: 1024 * 1024,
    apsw.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 500,
    apsw.SQLITE_LIMIT_PARSER_DEPTH: 250,
    apsw.SQLITE_LIMIT_FUNCTION_ARG: 100,
    # the running time of LIKE is the product of pattern and text, and it cannot be interrupted
    apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    apsw.SQLITE_LIMIT_TRIGGER_DEPTH: 50,
    apsw.SQLITE_LIMIT_VARIABLE_NUMBER: 32_766,
    apsw.SQLITE_LIMIT_VDBE_OP: 1_000_000,
    apsw.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_SETTINGS = {
    # statements cannot change schema tables, shadow tables or the journal mode directly
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA: 0,
    # views, triggers and defaults of an untrusted schema can only call harmless functions
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER: 0,
    # "name" is a column or an error, never a string literal
    apsw.SQLITE_DBCONFIG_DQS_DDL: 0,
    apsw.SQLITE_DBCONFIG_DQS_DML: 0,
    # attached databases must exist, and are read-only
    apsw.SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE: 0,
}
# built-in virtual tables; SQLite creates those for JSON on first use in any case
_KEPT_MODULES = (*MODULES, "fts5vocab", "json_each", "json_tree")


@frozen
class SqliteDriver:
    """Opens SQLite databases."""

    def open(
        self, target: DatabaseTarget, attached: Mapping[str, DatabaseTarget], config: Config, *, changes: bool
    ) -> SqliteSession:
        """Open the database, attach the others read-only, and confine their statements.

        Raises:
            SqlError: if a database cannot be opened.
        """
        with ExitStack() as stack:
            allowed = [
                AllowedDatabase(str(one.file), *stack.enter_context(pinned_folder(one)))
                for one in (target, *attached.values())
            ]
            connection = _connect(target, config, allowed, changes=changes)
            stack.callback(_close, connection, allowed)
            session = SqliteSession(connection, target, config, Authorizer(changes=changes), allowed, tuple(attached))
            with session.running(), session.failures():
                _confine(session, attached)
            session.resources.push(stack.pop_all())
        return session


def _connect(
    target: DatabaseTarget, config: Config, allowed: Sequence[AllowedDatabase], *, changes: bool
) -> apsw.Connection:
    # the limit applies to the whole process
    apsw.hard_heap_limit(config.max_memory_bytes)
    flags = apsw.SQLITE_OPEN_READWRITE if changes else apsw.SQLITE_OPEN_READONLY
    with allow_only(allowed) as refused, open_close_lock:
        try:
            return apsw.Connection(
                f"{target.file.as_uri()}?mode={'rw' if changes else 'ro'}",
                flags=flags | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOFOLLOW,
                statementcachesize=1,  # reuses the statement of `executemany`
            )
        except FAILURES as error:
            path = refused()
            typed = typed_error(error, target.name, config.busy_seconds) if path is None else refusal(target.name, path)
            raise typed from None


def _close(connection: apsw.Connection, allowed: Sequence[AllowedDatabase]) -> None:
    with allow_only(allowed), open_close_lock:
        connection.close(True)


def _confine(session: SqliteSession, attached: Mapping[str, DatabaseTarget]) -> None:
    connection, config = session.connection, session.config
    for limit, value in _LIMITS.items():
        connection.limit(limit, value)
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, config.max_value_bytes)
    for setting, value in _SETTINGS.items():
        connection.config(setting, value)
    _functions.install(connection, config.max_value_bytes)
    connection.drop_modules(_KEPT_MODULES)
    connection.execute("PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0").fetchall()
    for alias, target in attached.items():
        with open_close_lock:
            connection.execute(f'ATTACH DATABASE ? AS "{alias}"', (f"{target.file.as_uri()}?mode=ro",))
    connection.limit(apsw.SQLITE_LIMIT_ATTACHED, len(attached))
    connection.set_progress_handler(session.is_over, _STEPS_BETWEEN_CHECKS)
    if session.authorizer.changes:
        _prepare_for_changes(session)
    else:
        connection.execute("PRAGMA query_only = ON")
    connection.authorizer = session.authorizer


def _prepare_for_changes(session: SqliteSession) -> None:
    connection = session.connection
    connection.execute("PRAGMA foreign_keys = ON")
    if session.target.managed:
        # the journal mode is stored in the file, so change it only in the host's own databases
        session.when_free(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchall())
    page_size = int(session.when_free(lambda: connection.pragma("page_size")))
    connection.pragma("max_page_count", max(1, session.config.max_database_bytes // page_size))
