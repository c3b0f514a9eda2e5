"""Results on standard output: text, a table or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sideband.command_line import print_json, print_text

from ._tables import format_table


def print_result(output: Any) -> None:
    """Print the result of an op or a tool: text as it is, a list of objects as a table, the rest as JSON."""
    if isinstance(output, str):
        print_text(output)
    elif isinstance(output, list) and output and all(isinstance(row, Mapping) for row in output):
        columns = list(dict.fromkeys(key for row in output for key in row))
        rows = [[row.get(column) for column in columns] for row in output]
        print_text(format_table(columns, rows))
    else:
        print_json(output)
