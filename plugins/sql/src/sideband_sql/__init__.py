"""The op family `sql` of sideband: SQLite databases.

Ops are called by name (`sql.query`). Import from here to catch their errors or to use their models.
"""

from ._config import Config
from ._errors import (
    SqlBusy,
    SqlConflict,
    SqlConstraint,
    SqlCorrupt,
    SqlCursorMissing,
    SqlDenied,
    SqlDriver,
    SqlEngineOff,
    SqlError,
    SqlMissing,
    SqlReadonly,
    SqlStorage,
    SqlSyntax,
    SqlTimeout,
    SqlTooLarge,
    SqlValue,
)
from ._models import ExecuteManyResult, ExecuteResult, QueryResult, TransactionResult
from ._scope import SqlScope
from ._version import __version__

__all__ = [
    "Config",
    "ExecuteManyResult",
    "ExecuteResult",
    "QueryResult",
    "SqlBusy",
    "SqlConflict",
    "SqlConstraint",
    "SqlCorrupt",
    "SqlCursorMissing",
    "SqlDenied",
    "SqlDriver",
    "SqlEngineOff",
    "SqlError",
    "SqlMissing",
    "SqlReadonly",
    "SqlScope",
    "SqlStorage",
    "SqlSyntax",
    "SqlTimeout",
    "SqlTooLarge",
    "SqlValue",
    "TransactionResult",
    "__version__",
]
