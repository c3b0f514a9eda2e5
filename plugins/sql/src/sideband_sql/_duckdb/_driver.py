"""Opens DuckDB databases and confines them with the engine's own settings.

Statements cannot access files, networks or extensions; memory and threads are limited, and the configuration is locked
before the first statement.
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
from .._paths import DatabaseTarget, check_regular, pinned_folder
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
            SqlError: if the database cannot be opened.
        """
        with ExitStack() as stack:
            targets = {one.file: one for one in (target, *attached.values())}
            for one in sorted(targets):
                stack.enter_context(_exclusive(targets[one], config))
                stack.enter_context(_verified(targets[one]))
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
def _exclusive(target: DatabaseTarget, config: Config) -> Iterator[None]:
    """Allow one session per file: within a process, DuckDB would share one instance and what either has attached."""
    with _names:
        lock = _files.setdefault(target.file, threading.Lock())
    deadline = time.monotonic() + config.busy_seconds
    while not lock.acquire(timeout=_SECONDS_BETWEEN_TRIES):
        from_thread.check_cancelled()
        if time.monotonic() > deadline:
            raise SqlBusy(target.name, config.busy_seconds)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _verified(target: DatabaseTarget) -> Iterator[None]:
    """Check the file and its log before and after DuckDB opens them, which it does by path."""
    with pinned_folder(target) as (folder, _):
        log = f"{target.file.name}.wal"
        with suppress(FileNotFoundError):
            check_regular(f"{target.name}.wal", os.stat(log, dir_fd=folder, follow_symlinks=False))
        yield
        opened = os.stat(target.file.name, dir_fd=folder, follow_symlinks=False)
        current = target.file.lstat()
        if (opened.st_dev, opened.st_ino) != (current.st_dev, current.st_ino):
            raise SqlDenied(
                f"`{target.name}` was moved or replaced while it was opened", hint="try again when the file is stable"
            )


def _connect(target: DatabaseTarget, config: Config, *, changes: bool) -> duckdb.DuckDBPyConnection:
    settings: dict[str, str | bool | int | float | list[str]] = {
        **_SETTINGS,
        "memory_limit": f"{config.max_memory_bytes}B",
    }
    deadline = time.monotonic() + config.busy_seconds
    if changes:
        _initialize(target)
    while True:
        try:
            return duckdb.connect(str(target.file), read_only=not changes, config=settings)
        except (duckdb.Error, RuntimeError) as error:
            if not any(text in str(error) for text in _BUSY):
                raise typed_error(error, target.name, config.busy_seconds) from None
            if time.monotonic() > deadline:
                raise SqlBusy(target.name, config.busy_seconds) from None
        from_thread.check_cancelled()
        time.sleep(_SECONDS_BETWEEN_TRIES)


def _initialize(target: DatabaseTarget) -> None:
    """Initialize an empty file, which DuckDB cannot do: create a database beside it and rename it into place."""
    if target.file.stat().st_size:
        return
    with target.file.open("rb") as empty:
        # another process may do the same at this moment
        fcntl.flock(empty, fcntl.LOCK_EX)
        if target.file.stat().st_size:
            return
        temporary = target.file.with_name(f".{target.file.name}.{secrets.token_hex(8)}")
        try:
            duckdb.connect(str(temporary)).close()
            temporary.chmod(0o600)
            temporary.replace(target.file)
        finally:
            temporary.unlink(missing_ok=True)
