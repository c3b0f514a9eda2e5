"""Limits on the rows and bytes of a result, independent of the engine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from attrs import define, field

from ._config import Config
from ._errors import SqlSyntax, SqlTooLarge, SqlValue
from ._protocols import QueryAnswer

_BYTES_OF_A_NUMBER = 8

Row = dict[str, Any]


def take_all(answer: QueryAnswer, config: Config) -> list[Sequence[Any]]:
    """Return all rows that a changing statement returns.

    Raises:
        SqlTooLarge: if they exceed the limits of a result.
    """
    rows: list[Sequence[Any]] = []
    size = 0
    for row in answer:
        rows.append(row)
        size += size_of(row)
        if len(rows) > config.max_rows or size > config.max_result_bytes:
            raise SqlTooLarge("RETURNING exceeds the limits of a result")
    _refuse_duplicates(answer.columns)
    return rows


@define
class RowReader:
    """Reads the rows of a result in batches of limited size, and keeps the first row that did not fit.

    Args:
        columns: the column names.

    Raises:
        SqlSyntax: if there are no columns, or duplicate names.
    """

    columns: Sequence[str]
    _rows: Iterator[Sequence[Any]]
    _pending: Sequence[Any] | None = field(init=False, default=None)

    @classmethod
    def of(cls, answer: QueryAnswer) -> RowReader:
        """Return a reader of a statement's result."""
        check_columns(answer.columns)
        return cls(answer.columns, iter(answer))

    def take(self, max_rows: int, max_bytes: int) -> tuple[list[Row], bool]:
        """Return the next rows and whether there are more.

        Raises:
            SqlTooLarge: if a single row exceeds the limit.
        """
        taken: list[Row] = []
        size = 0
        while (values := self._next()) is not None:
            size += size_of(values)
            if len(taken) == max_rows or size > max_bytes:
                if not taken:
                    raise SqlTooLarge(f"one row exceeds the limit of {max_bytes:,} bytes per result")
                self._pending = values
                return taken, True
            taken.append(dict(zip(self.columns, values, strict=True)))
        return taken, False

    def _next(self) -> Sequence[Any] | None:
        if self._pending is not None:
            pending, self._pending = self._pending, None
            return pending
        return next(self._rows, None)


def size_of(row: Sequence[Any]) -> int:
    """Return the approximate size of a row in bytes.

    Raises:
        SqlValue: if a value cannot be returned.
    """
    return sum(map(_size, row))


def check_columns(columns: Sequence[str]) -> None:
    """Check that a statement returns columns with unique names.

    Raises:
        SqlSyntax: if there are no columns, or duplicate names.
    """
    if not columns:
        raise SqlSyntax("it returns no rows", hint="use `sql.query` for SELECT, and `sql.execute` for changes")
    _refuse_duplicates(columns)


def _refuse_duplicates(columns: Sequence[str]) -> None:
    if len(set(columns)) < len(columns):
        duplicates = sorted({name for name in columns if columns.count(name) > 1})
        raise SqlSyntax(
            f"duplicate column names: {', '.join(f'`{name}`' for name in duplicates)}",
            hint="rename columns with AS; rows are returned by column name",
        )


def _size(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, list):
        return sum(map(_size, value), _BYTES_OF_A_NUMBER)
    if isinstance(value, dict):
        return sum(map(_size, value.values()), sum(map(len, value)))
    if isinstance(value, float) and not math.isfinite(value):
        raise SqlValue("a column contains an infinite number", hint="read it with CAST(column AS TEXT)")
    return _BYTES_OF_A_NUMBER
