"""The table `[plugins.sql]`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_MEBIBYTE = 1024 * 1024


class Config(BaseModel):
    """Limits of statements and results.

    Attributes:
        max_seconds: the maximum running time of the statements of one op.
        busy_seconds: how long to wait for a database that is locked by another process.
        max_rows: the maximum number of rows that a query returns. A longer result is truncated and marked as such.
        max_result_bytes: the maximum number of bytes of text and BLOBs that an op returns.
        max_value_bytes: the maximum size of a text or BLOB that a statement may handle.
        max_database_bytes: the maximum size of a database; one that is already larger cannot grow.
        max_memory_bytes: the maximum memory of SQLite, for all statements of the process together.
        undo_bytes: the maximum size of the inverse that is stored to undo a change; 0 disables undo.
        cursors: the maximum number of open cursors per skill and grant.
        max_export_bytes: the maximum size of an export.
        threads: the maximum number of statements that run at once in this host.
        duckdb: whether to enable DuckDB. The engine does not limit the memory of single values, so one query can crash
            the host.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    busy_seconds: Annotated[float, Field(ge=0, le=600)] = 10.0
    max_rows: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    max_result_bytes: Annotated[int, Field(ge=1024)] = 8 * _MEBIBYTE
    max_value_bytes: Annotated[int, Field(ge=1024, le=64 * _MEBIBYTE)] = 16 * _MEBIBYTE
    max_database_bytes: Annotated[int, Field(ge=64 * 1024)] = 1024 * _MEBIBYTE
    max_memory_bytes: Annotated[int, Field(ge=16 * _MEBIBYTE)] = 512 * _MEBIBYTE
    undo_bytes: Annotated[int, Field(ge=0, le=64 * _MEBIBYTE)] = 4 * _MEBIBYTE
    cursors: Annotated[int, Field(ge=1, le=64)] = 4
    max_export_bytes: Annotated[int, Field(ge=1024)] = 256 * _MEBIBYTE
    threads: Annotated[int, Field(ge=1, le=64)] = 8
    duckdb: bool = False
