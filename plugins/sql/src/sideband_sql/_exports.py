"""Exports rows as JSON lines or CSV. Blocking; runs in a thread."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

from ._limits import size_of
from ._protocols import QueryAnswer

_CHUNK = 256 * 1024


def write_rows(answer: QueryAnswer, form: Literal["jsonl", "csv"], write: Callable[[bytes], Any]) -> int:
    """Write all rows in chunks and return their number.

    Args:
        answer: the rows.
        form: `jsonl` writes bytes as `{"__bytes__": base64}`; `csv` (RFC 4180, with a header line) writes base64.
        write: called with each chunk.

    Raises:
        SqlError: if a row cannot be read or written.
    """
    text = io.StringIO(newline="")
    put = _csv(text, answer.columns) if form == "csv" else _json_lines(text, answer.columns)
    count = 0
    for row in answer:
        # reject values that JSON does not support
        size_of(row)
        put(row)
        count += 1
        if text.tell() >= _CHUNK:
            write(text.getvalue().encode())
            text.seek(0)
            text.truncate()
    write(text.getvalue().encode())
    return count


def _csv(text: io.StringIO, columns: Sequence[str]) -> Callable[[Sequence[Any]], object]:
    writer = csv.writer(text)
    writer.writerow(columns)

    def put(row: Sequence[Any]) -> None:
        writer.writerow([_cell(value) for value in row])

    return put


def _json_lines(text: io.StringIO, columns: Sequence[str]) -> Callable[[Sequence[Any]], object]:
    def put(row: Sequence[Any]) -> None:
        json.dump(dict(zip(columns, row, strict=True)), text, default=_bytes, ensure_ascii=False, allow_nan=False)
        text.write("\n")

    return put


def _cell(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return json.dumps(value, default=_bytes) if isinstance(value, list | dict) else value


def _bytes(value: bytes) -> dict[str, str]:
    return {"__bytes__": base64.b64encode(value).decode()}
