"""SQLite, in the library that `apsw` brings along."""

from ._driver import SqliteDriver

__all__ = ["SqliteDriver"]
