"""A store of sideband on PostgreSQL, which the hosts of several machines share."""

from ._errors import (
    PostgresBusy,
    PostgresCutOff,
    PostgresUnreachable,
    PostgresUnsupported,
    PostgresUnwritable,
    PostgresValueError,
)
from ._models import Config
from ._store import PostgresStore, open_postgres
from ._version import __version__

__all__ = [
    "Config",
    "PostgresBusy",
    "PostgresCutOff",
    "PostgresStore",
    "PostgresUnreachable",
    "PostgresUnsupported",
    "PostgresUnwritable",
    "PostgresValueError",
    "__version__",
    "open_postgres",
]
