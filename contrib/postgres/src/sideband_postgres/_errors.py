"""The errors of the store, and their mapping from those of PostgreSQL.

StoreError                                        store.failed          (of sideband)
├── PostgresBusy(TimeoutError)                    postgres.busy
├── PostgresCutOff                                postgres.cut_off      this host has lost its locks
├── PostgresUnreachable(ConnectionError)          postgres.unreachable
├── PostgresUnsupported                           postgres.unsupported  newer tables, or a database that does not fit
├── PostgresUnwritable(OSError)                   postgres.unwritable
└── PostgresValueError(ValueError)                postgres.value
"""

from __future__ import annotations

import psycopg
from sideband import StoreError

from ._connection import Refused

# libpq tells no code for a refused connection.
_REFUSED_HINT = "check the user, the password and the database of `address`, and `max_connections` of the server"
_UNWRITABLE = {
    "25006": "connect to the primary server, or set its `default_transaction_read_only` to off",
    "42501": "grant the user of `address` the rights on the schema, or CREATE on the database",
    "53100": "free some disk space on the server and retry",
    "53200": "give the server more memory, or lower its `max_connections`",
    "58030": "check the disk of the server",
}
_BUSY = {
    "40001": "retry",
    "40P01": "retry",
    "55P03": "find the transaction that holds the lock in `pg_stat_activity`, and end it; then retry",
    "57014": "look for slow or blocked statements in `pg_stat_activity`, or raise `statement_seconds`",
}


class PostgresBusy(StoreError, TimeoutError):
    """The server, or a free connection to it, took longer than the time limit."""

    code = "postgres.busy"

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(f"the PostgreSQL store is busy: {problem}", hint=hint, retryable=True)


class PostgresCutOff(StoreError):
    """This host had no connection for a while, and another one has taken its locks. It can no longer write."""

    code = "postgres.cut_off"

    def __init__(self) -> None:
        super().__init__(
            "this host was cut off from the PostgreSQL store, and others may have taken its locks",
            hint="check the network between this machine and the server, then restart the host",
        )


class PostgresUnsupported(StoreError):
    """The tables belong to a newer version, or the database does not fit. Nothing was changed."""

    code = "postgres.unsupported"

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(f"cannot use the PostgreSQL store: {problem}", hint=hint)


class PostgresUnreachable(StoreError, ConnectionError):
    """The server cannot be reached, or the connection broke during a statement, which may have been executed."""

    code = "postgres.unreachable"

    def __init__(self, problem: str, *, hint: str = "") -> None:
        super().__init__(
            f"cannot reach the PostgreSQL store: {problem}",
            hint=hint or "check that the server runs and that `address` names it, then retry",
            retryable=True,
        )


class PostgresUnwritable(StoreError, OSError):
    """The server refuses to write. Nothing was partially written."""

    code = "postgres.unwritable"

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(f"cannot write to the PostgreSQL store: {problem}", hint=hint)


class PostgresValueError(StoreError, ValueError):
    """A key or a value cannot be stored. Nothing was written."""

    code = "postgres.value"

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(
            f"value for {key[:80]!a} cannot be stored: {problem}",
            hint="use only objects of text, finite numbers, booleans, lists and objects; encode bytes as base64",
        )


def is_temporary(error: psycopg.Error) -> bool:
    """Return whether the server cannot be reached at the moment, as while it restarts."""
    state = error.sqlstate or ""
    lost = not state and isinstance(error, psycopg.OperationalError)
    return lost or state[:2] == "08" or state[:3] == "57P"


def store_error(error: psycopg.Error) -> StoreError:
    """Return the store's error for an error of PostgreSQL or of its driver."""
    state, problem = error.sqlstate or "", _text_of(error)
    if state in _UNWRITABLE:
        return PostgresUnwritable(problem, hint=_UNWRITABLE[state])
    if state in _BUSY:
        return PostgresBusy(problem, hint=_BUSY[state])
    if is_temporary(error):
        return PostgresUnreachable(problem, hint=_REFUSED_HINT if isinstance(error, Refused) else "")
    if state[:2] in ("XX", "58"):
        return StoreError(f"the PostgreSQL store failed: {problem}", hint="check the log of the server")
    return StoreError(f"the PostgreSQL store failed: {problem}", hint="report this; it is a bug in the store")


def _text_of(error: psycopg.Error) -> str:
    """Return the message of the server, or that of the driver in one line."""
    return error.diag.message_primary or " ".join(str(error).split()) or type(error).__name__
