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
        raise ValueError("give a plain name of letters, digits and `_`, other than `main` and `temp`")
    return text


Sql = Annotated[str, StringConstraints(min_length=1, max_length=1024 * 1024, pattern=r"^[^\x00]*$")]
Database = Annotated[str, AfterValidator(check_database_name)]
Alias = Annotated[str, AfterValidator(_check_alias)]
CursorId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Attached = Annotated[dict[Alias, Database], Field(max_length=8)]


class _WithSql(OpParams):
    sql: Sql


class _OnDatabase(OpParams):
    db: Database
    attach: Attached = Field({})

    def scopes(self, mode: str) -> Iterator[SqlScope]:
        """What the grant must cover: the database in this mode, and reading each attached one."""
        yield SqlScope(path=scope_path(self.db), mode=mode)
        for database in self.attach.values():
            yield SqlScope(path=scope_path(database), mode="read")


class QueryParams(_OnDatabase, _WithSql):
    """Parameters of `sql.query`."""

    params: Bindings = Field([])
    max_rows: Annotated[int, Field(ge=1)] | None = None


class ExecuteParams(_OnDatabase, _WithSql):
    """Parameters of `sql.execute`."""

    params: Bindings = Field([])


class ExecuteManyParams(_OnDatabase, _WithSql):
    """Parameters of `sql.executemany`."""

    rows: Annotated[list[Bindings], Field(max_length=100_000)]


class Statement(OpParams):
    """One statement of a transaction."""

    sql: Sql
    params: Bindings = Field([])


class TransactionParams(_OnDatabase):
    """Parameters of `sql.transaction`."""

    statements: Annotated[list[Statement], Field(min_length=1, max_length=1000)]


class OpenParams(_OnDatabase, _WithSql):
    """Parameters of `sql.open`."""

    params: Bindings = Field([])


class FetchParams(OpParams):
    """Parameters of `sql.fetch`."""

    cursor: CursorId
    max_rows: Annotated[int, Field(ge=1)] | None = None


class CloseParams(OpParams):
    """Parameters of `sql.close`."""

    cursor: CursorId


class ExportParams(_OnDatabase, _WithSql):
    """Parameters of `sql.export`."""

    params: Bindings = Field([])
    format: Literal["jsonl", "csv"] = "jsonl"


class RevertParams(OpParams):
    """Parameters of `sql.revert`."""

    db: Database
    changes: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class QueryResult(BaseModel):
    """Rows, in the order of the statement.

    Attributes:
        columns: the names of the columns, in order.
        rows: one object a row, by column name. Values are null, numbers, text, or bytes for a BLOB.
        truncated: whether there are more rows than the limits on rows and bytes let through.
    """

    columns: list[str]
    rows: list[dict[str, Any]]
    truncated: bool = False


class ExecuteResult(BaseModel):
    """What a statement changed.

    Attributes:
        rows_affected: how many rows it inserted, updated or deleted; 0 for a change of the schema.
        last_insert_rowid: the rowid of the last row it inserted, if it did.
        rows: what its `RETURNING` clause answers.
    """

    rows_affected: int
    last_insert_rowid: int | None = None
    rows: list[dict[str, Any]] = []


class ExecuteManyResult(BaseModel):
    """What one statement changed, over all its rows."""

    rows_affected: int


class TransactionResult(BaseModel):
    """What each statement of the transaction changed, in order."""

    results: list[ExecuteResult]


class OpenResult(BaseModel):
    """An answer that is read piece by piece.

    Attributes:
        cursor: what `sql.fetch` and `sql.close` are given. It ends with the call that opened it.
        columns: the names of the columns, in order.
    """

    cursor: str
    columns: list[str]


class FetchResult(BaseModel):
    """The next rows.

    Attributes:
        rows: one object a row, by column name; as many as fit.
        more: whether there are more. Without, the cursor is closed.
    """

    rows: list[dict[str, Any]]
    more: bool


class ExportResult(BaseModel):
    """What was exported.

    Attributes:
        sha256: the blob.
        size: its bytes.
        rows: how many rows are in it.
        columns: the names of the columns, in order.
    """

    sha256: str
    size: int
    rows: int
    columns: list[str]


class RevertResult(BaseModel):
    """What was taken back.

    Attributes:
        rows_affected: how many rows are as they were.
    """

    rows_affected: int
