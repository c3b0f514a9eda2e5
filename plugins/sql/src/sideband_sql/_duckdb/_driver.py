"""Opens DuckDB databases, and confines them by the engine's own settings.

Statements have no access to files or networks, no extensions, limits on memory and threads, and a configuration that
is locked before the first of them.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import duckdb
from anyio import from_thread
from attrs import frozen

from .._config import Config
from .._errors import SqlBusy, SqlDenied
from .._paths import DatabaseTarget, check_plain, pinned
from ._failures import typed_error
from ._session import DuckdbSession

_SECONDS_BETWEEN_TRIES = 0.01
_SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "allow_persistent_secrets": "false",
    "temp_directory": "",
    "threads": "2",
}
_names = threading.Lock()
_files: dict[Path, threading.Lock] = {}
_BUSY = ("Could not set lock", "different configuration", "Unique file handle conflict", "already attached")


@frozen
class DuckdbDriver:
    """Opens DuckDB databases."""

    def open(
        self, target: DatabaseTarget, attached: Mapping[str, DatabaseTarget], config: Config, *, changes: bool
    ) -> DuckdbSession:
        """Open the database, attach the others read-only, and lock the configuration.

        Raises:
            SqlError: it can't be opened.
        """
        with ExitStack() as stack:
            targets = {one.file: one for one in (target, *attached.values())}
            for one in sorted(targets):
                stack.enter_context(_alone(targets[one], config))
                stack.enter_context(_unmoved(targets[one]))
            connection = _connect(target, config, changes=changes)
            stack.callback(connection.close)
            session = DuckdbSession(connection, target, config, changes)
            with session.failures():
                for alias, other in attached.items():
                    path = str(other.file).replace("'", "''")
                    connection.execute(f"ATTACH '{path}' AS \"{alias}\" (READ_ONLY)")
                connection.execute("SET enable_external_access = false")
                connection.execute("SET lock_configuration = true")
            session.resources.push(stack.pop_all())
        return session


@contextmanager
def _alone(target: DatabaseTarget, config: Config) -> Iterator[None]:
    """One session a file: two in one process would be one instance of the engine, with what either has attached."""
    with _names:
        lock = _files.setdefault(target.file, threading.Lock())
    gives_up = time.monotonic() + config.busy_seconds
    while not lock.acquire(timeout=_SECONDS_BETWEEN_TRIES):
        from_thread.check_cancelled()
        if time.monotonic() > gives_up:
            raise SqlBusy(target.name, config.busy_seconds)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _unmoved(target: DatabaseTarget) -> Iterator[None]:
    """Check the file and the log beside it before and after it is opened: DuckDB opens it by its path."""
    with pinned(target) as (folder, _):
        log = f"{target.file.name}.wal"
        with suppress(FileNotFoundError):
            check_plain(f"{target.name}.wal", os.stat(log, dir_fd=folder, follow_symlinks=False))
        yield
        there = os.stat(target.file.name, dir_fd=folder, follow_symlinks=False)
        named = target.file.lstat()
        if (there.st_dev, there.st_ino) != (named.st_dev, named.st_ino):
            raise SqlDenied(f"`{target.name}` is not where it was", hint="try again once nobody moves it")


def _connect(target: DatabaseTarget, config: Config, *, changes: bool) -> duckdb.DuckDBPyConnection:
    settings: dict[str, str | bool | int | float | list[str]] = {
        **_SETTINGS,
        "memory_limit": f"{config.max_memory_bytes}B",
    }
    gives_up = time.monotonic() + config.busy_seconds
    if changes:
        _begin_file(target)
    while True:
        try:
            return duckdb.connect(str(target.file), read_only=not changes, config=settings)
        except (duckdb.Error, RuntimeError) as error:
            if not any(text in str(error) for text in _BUSY):
                raise typed_error(error, target.name, config.busy_seconds) from None
            if time.monotonic() > gives_up:
                raise SqlBusy(target.name, config.busy_seconds) from None
        from_thread.check_cancelled()
        time.sleep(_SECONDS_BETWEEN_TRIES)


def _begin_file(target: DatabaseTarget) -> None:
    """Make a database of an empty file, which DuckDB does not do: beside it, then in its place."""
    if target.file.stat().st_size:
        return
    with target.file.open("rb") as empty:
        # another process may be about to do the same
        fcntl.flock(empty, fcntl.LOCK_EX)
        if target.file.stat().st_size:
            return
        beside = target.file.with_name(f".{target.file.name}.{secrets.token_hex(8)}")
        try:
            duckdb.connect(str(beside)).close()
            beside.chmod(0o600)
            beside.replace(target.file)
        finally:
            beside.unlink(missing_ok=True)
