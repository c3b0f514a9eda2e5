"""Change one value in a TOML document. The caller compares the result with what it should be."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError


def with_value(text: str, path: Sequence[str], value: Any) -> Iterator[str]:
    """Yield ways to write a value at a path.

    New tables are blocks if possible. A table in one line, or with dotted keys, can only have tables like itself in it.
    """
    for form in (tomlkit.table, tomlkit.inline_table):
        yield _with_value(text, path, value, form)


def without_value(text: str, path: Sequence[str]) -> Iterator[str]:
    """Yield the text without the value at a path."""
    document = tomlkit.parse(text)
    inside: Any = document
    *tables, last = path
    try:
        for key in tables:
            inside = inside[key]
        del inside[last]
        yield tomlkit.dumps(document)
    except (TOMLKitError, ValueError, TypeError):
        return


def same_settings(text: str, values: Mapping[str, Any]) -> bool:
    """Return whether a text has these values, apart from empty tables, which say nothing."""
    try:
        return bool(_without_empty(tomllib.loads(text)) == _without_empty(values))
    except tomllib.TOMLDecodeError:
        return False


def _with_value(text: str, path: Sequence[str], value: Any, form: Callable[[], Any]) -> str:
    document = tomlkit.parse(text)
    inside: Any = document
    *tables, last = path
    try:
        for depth, key in enumerate(tables, 1):
            if key not in inside:
                # The table that gets the value needs a header of its own.
                is_last = depth == len(tables) and not isinstance(value, Mapping)
                inside[key] = tomlkit.table(is_super_table=not is_last) if form is tomlkit.table else form()
            inside = inside[key]
        if isinstance(value, Mapping):
            inside[last] = form()
            inside[last].update({key: _in_line(one) for key, one in value.items()})
        else:
            inside[last] = value
        return tomlkit.dumps(document)
    except (TOMLKitError, ValueError, TypeError):
        return text


def _in_line(value: Any) -> Any:
    """Return a value as TOML: inner tables on one line, so that a table is one block."""
    if not isinstance(value, Mapping):
        return value
    table = tomlkit.inline_table()
    table.update({key: _in_line(one) for key, one in value.items()})
    return table


def _without_empty(values: Any) -> Any:
    if not isinstance(values, Mapping):
        return values
    inner = {key: _without_empty(value) for key, value in values.items()}
    return {key: value for key, value in inner.items() if value != {}}
