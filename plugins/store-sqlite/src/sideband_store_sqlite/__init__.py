"""The embedded store of sideband: documents and streams in one SQLite file."""

from ._errors import StoreBusy, StoreDamaged, StoreForeign, StoreUnwritable, ValueNotStorable
from ._store import SqliteStore, open_sqlite
from ._version import __version__

__all__ = [
    "SqliteStore",
    "StoreBusy",
    "StoreDamaged",
    "StoreForeign",
    "StoreUnwritable",
    "ValueNotStorable",
    "__version__",
    "open_sqlite",
]
