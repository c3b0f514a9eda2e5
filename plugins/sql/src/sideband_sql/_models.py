"""Parameters and results of the ops."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, FiniteFloat, StringConstraints
from sideband.ops import OpParams

from ._paths import check_database_name, scope_path
from ._scope import SqlScope

_ALIAS = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}\Z")

Value = None | bool | int | FiniteFloat | str | bytes
Bindings = dict[str, Value] | list[Value]


def _check_alias(text: str) -> str:
    if not _ALIAS.match(text) or text.lower() in {"main", "temp"}:
        raise ValueError("use letters, digits and `_` only, and neither `main` nor `temp`")
    return text


Sql = Annotated[str, StringConstraints(min_length=1, max_length=1024 * 1024, pattern=r"^[^\x00]*$")]
Database = Annotated[str, AfterValidator(check_database_name)]
Alias = Annotated[str, AfterValidator(_check_alias)]
CursorId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Identities = Annotated[list[Annotated[str, StringConstraints(max_length=100)]], Field(max_length=2)]
Attached = Annotated[dict[Alias, Database], Field(max_length=8)]


class _WithSql(OpParams):
    sql: Sql


class _OnDatabase(OpParams):
    db: Database
    attach: Attached = Field(default={})

    def scopes(self, mode: str) -> Iterator[SqlScope]:
        """Yield the required scopes: the database in the given mode, and read access to each attached database."""
        yield SqlScope(path=scope_path(self.db), mode=mode)
        for database in self.attach.values():
            yield SqlScope(path=scope_path(database), mode="read")


class QueryParams(_OnDatabase, _WithSql):
    """Parameters of `sql.query`."""

    params: Bindings = Field(default=[])
    max_rows: Annotated[int, Field(ge=1)] | None = None


class ExecuteParams(_OnDatabase, _WithSql):
    """Parameters of `sql.execute`."""

    params: Bindings = Field(default=[])


class ExecuteManyParams(_OnDatabase, _WithSql):
    """Parameters of `sql.executemany`."""

    rows: Annotated[list[Bindings], Field(max_length=100_000)]


class Statement(OpParams):
    """One statement of a transaction."""

    sql: Sql
    params: Bindings = Field(default=[])


class TransactionParams(_OnDatabase):
    """Parameters of `sql.transaction`."""

    statements: Annotated[list[Statement], Field(min_length=1, max_length=1000)]


class OpenParams(_OnDatabase, _WithSql):
    """Parameters of `sql.open`."""

    params: Bindings = Field(default=[])


class FetchParams(OpParams):
    """Parameters of `sql.fetch`."""

    cursor: CursorId
    max_rows: Annotated[int, Field(ge=1)] | None = None


class CloseParams(OpParams):
    """Parameters of `sql.close`."""

    cursor: CursorId


class ExportParams(_OnDatabase, _WithSql):
    """Parameters of `sql.export`."""

    params: Bindings = Field(default=[])
    format: Literal["jsonl", "csv"] = "jsonl"


class RevertParams(OpParams):
    """Parameters of `sql.revert`."""

    db: Database
    changes: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    recorded: Identities | None = Field(default=None, description="identifies the folder and the file, for undo")


class QueryResult(BaseModel):
    """Rows, in the order of the statement.

    Attributes:
        columns: the column names, in order.
        rows: one object per row, by column name. Values are null, numbers, text, or bytes for a BLOB.
        truncated: whether rows were left out because of the limits on rows and bytes.
    """

    columns: list[str]
    rows: list[dict[str, Any]]
    truncated: bool = False


class ExecuteResult(BaseModel):
    """The changes of one statement.

    Attributes:
        rows_affected: the number of rows inserted, updated or deleted; 0 for a change of the schema.
        last_insert_rowid: the rowid of the last inserted row, if any.
        rows: the rows of the `RETURNING` clause.
    """

    rows_affected: int
    last_insert_rowid: int | None = None
    rows: list[dict[str, Any]] = []


class ExecuteManyResult(BaseModel):
    """The changes of one statement, over all its rows.

    Attributes:
        rows_affected: the number of rows that were inserted, updated or deleted.
    """

    rows_affected: int


class TransactionResult(BaseModel):
    """The changes of each statement of the transaction, in order.

    Attributes:
        results: the changes, one for each statement.
    """

    results: list[ExecuteResult]


class OpenResult(BaseModel):
    """An open cursor.

    Attributes:
        cursor: the id for `sql.fetch` and `sql.close`. The cursor ends with the call that opened it.
        columns: the column names, in order.
    """

    cursor: str
    columns: list[str]


class FetchResult(BaseModel):
    """The next rows of a cursor.

    Attributes:
        rows: as many rows as fit into a result; one object per row, by column name.
        more: whether there are more rows. If not, the cursor is closed.
    """

    rows: list[dict[str, Any]]
    more: bool


class ExportResult(BaseModel):
    """A finished export.

    Attributes:
        sha256: the digest of the blob.
        size: its size in bytes.
        rows: the number of exported rows.
        columns: the column names, in order.
    """

    sha256: str
    size: int
    rows: int
    columns: list[str]


class RevertResult(BaseModel):
    """The result of a revert.

    Attributes:
        rows_affected: the number of rows that were restored.
    """

    rows_affected: int
