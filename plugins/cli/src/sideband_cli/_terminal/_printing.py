"""Text, tables and JSON on standard output, and notices on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from ._clean import clean, escape_controls, json_default
from ._tables import format_table


def notice(text: str) -> None:
    """Print a message to standard error."""
    sys.stderr.write(clean(text) + "\n")


def print_json(data: Any) -> None:
    """Print data as one JSON document; bytes as ``{"__bytes__": base64}``."""
    as_ascii = (sys.stdout.encoding or "").lower() not in ("utf-8", "utf8")
    text = json.dumps(data, ensure_ascii=as_ascii, indent=2, default=json_default)
    sys.stdout.write(escape_controls(text) + "\n")


def print_data(arguments: Any, data: Any, text: str) -> None:
    """Print ``data`` if ``--json`` was given, else ``text``."""
    if arguments.json:
        print_json(data)
    else:
        sys.stdout.write(clean(text) + "\n")


def print_result(output: Any) -> None:
    """Print the result of an op or a tool: text as it is, a list of objects as a table, the rest as JSON."""
    if isinstance(output, str):
        sys.stdout.write(clean(output) + "\n")
    elif isinstance(output, list) and output and all(isinstance(row, Mapping) for row in output):
        columns = list(dict.fromkeys(key for row in output for key in row))
        rows = [[row.get(column) for column in columns] for row in output]
        sys.stdout.write(format_table(columns, rows) + "\n")
    else:
        sys.stdout.write(clean(json.dumps(output, ensure_ascii=False, indent=2, default=json_default)) + "\n")
