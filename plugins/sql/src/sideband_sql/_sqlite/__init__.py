"""SQLite, using the library that is bundled with `apsw`."""

from ._driver import SqliteDriver

__all__ = ["SqliteDriver"]
