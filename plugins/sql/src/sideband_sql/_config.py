"""The table `[plugins.sql]`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_MEBIBYTE = 1024 * 1024


class Config(BaseModel):
    """The limits of statements and results.

    Attributes:
        max_seconds: how long the statements of one op may run.
        busy_seconds: how long to wait for a database that another process holds.
        max_rows: how many rows a query answers at most; the rest is left out and said to be.
        max_result_bytes: how many bytes of text and BLOBs an op answers at most.
        max_value_bytes: the longest text or BLOB that a statement may handle.
        max_database_bytes: how large a database may grow; one that is larger already can't grow.
        max_memory_bytes: how much memory SQLite may use, all statements of the process together.
        undo_bytes: how large a change may be for what takes it back to be kept; 0 keeps nothing.
        cursors: how many cursors one skill with one set of rights may have open.
        max_export_bytes: how large an export may be.
        threads: how many statements run at once in this host.
        duckdb: whether databases of DuckDB may be used. Its engine holds no limit on the memory of single values, so
            that one query can end the host.
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
