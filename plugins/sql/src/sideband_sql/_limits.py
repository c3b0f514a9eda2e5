"""How much of an answer is taken: rows and bytes, whatever engine answers."""

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
    """All rows of what a change answers.

    Raises:
        SqlTooLarge: they are more than an answer may have.
    """
    rows: list[Sequence[Any]] = []
    size = 0
    for row in answer:
        rows.append(row)
        size += size_of(row)
        if len(rows) > config.max_rows or size > config.max_result_bytes:
            raise SqlTooLarge("RETURNING answers more than fits")
    _refuse_duplicates(answer.columns)
    return rows


@define
class Taker:
    """Takes rows of an answer, as many at once as fit, and keeps the one that did not.

    Args:
        columns: the names of the columns.

    Raises:
        SqlSyntax: there are none, or two have one name.
    """

    columns: Sequence[str]
    _rows: Iterator[Sequence[Any]]
    _kept: Sequence[Any] | None = field(init=False, default=None)

    @classmethod
    def of(cls, answer: QueryAnswer) -> Taker:
        """A taker of what a statement answers."""
        check_columns(answer.columns)
        return cls(answer.columns, iter(answer))

    def take(self, max_rows: int, max_bytes: int) -> tuple[list[Row], bool]:
        """The next rows, and whether there are more.

        Raises:
            SqlTooLarge: not even one fits.
        """
        taken: list[Row] = []
        size = 0
        while (values := self._next()) is not None:
            size += size_of(values)
            if len(taken) == max_rows or size > max_bytes:
                if not taken:
                    raise SqlTooLarge(f"one row is larger than the {max_bytes:,} bytes of a result")
                self._kept = values
                return taken, True
            taken.append(dict(zip(self.columns, values, strict=True)))
        return taken, False

    def _next(self) -> Sequence[Any] | None:
        if self._kept is not None:
            kept, self._kept = self._kept, None
            return kept
        return next(self._rows, None)


def size_of(row: Sequence[Any]) -> int:
    """The bytes of its values, about.

    Raises:
        SqlValue: one of them can't be answered.
    """
    return sum(map(_size, row))


def check_columns(columns: Sequence[str]) -> None:
    """Let through columns that can be the names of an object.

    Raises:
        SqlSyntax: there are none, or two have one name.
    """
    if not columns:
        raise SqlSyntax("it answers no rows", hint="`sql.query` is for SELECT; `sql.execute` is for changes")
    _refuse_duplicates(columns)


def _refuse_duplicates(columns: Sequence[str]) -> None:
    if len(set(columns)) < len(columns):
        twice = sorted({name for name in columns if columns.count(name) > 1})
        raise SqlSyntax(
            f"several columns are named {', '.join(f'`{name}`' for name in twice)}",
            hint="rows are answered by column name: give each its own with AS",
        )


def _size(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, list):
        return sum(map(_size, value), _BYTES_OF_A_NUMBER)
    if isinstance(value, dict):
        return sum(map(_size, value.values()), sum(map(len, value)))
    if isinstance(value, float) and not math.isfinite(value):
        raise SqlValue("a column holds an infinite number", hint="JSON has none; read it with CAST(column AS TEXT)")
    return _BYTES_OF_A_NUMBER
