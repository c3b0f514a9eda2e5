"""Arguments of the forms ``key=value``, ``key:=JSON`` and ``--input FILE``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sideband import UsageError


def read_values(words: Iterable[str], file: str | None = None) -> dict[str, Any]:
    """Merge the arguments from ``words`` with the JSON object in ``file`` (``-`` for standard input).

    Raises:
        UsageError: if an argument or the file is invalid; the message names it.

    Example:
        >>> read_values(["name=Ada", "tags:=[1, 2]"])
        {'name': 'Ada', 'tags': [1, 2]}
    """
    values = _read_file(file) if file else {}
    given: dict[str, Any] = {}
    for word in words:
        key, value = _read_word(word)
        if key in given:
            raise UsageError(f"duplicate argument `{key}`", hint="write a list as key:=[1, 2]")
        given[key] = value
    return {**values, **given}


def _read_word(word: str) -> tuple[str, Any]:
    key, equals, text = word.partition("=")
    if not equals or not key.rstrip(":"):
        raise UsageError(
            f"expected key=value, got `{word}`", hint="write key=value, or key:=JSON for values other than text"
        )
    if not key.endswith(":"):
        return key, text
    try:
        return key[:-1], json.loads(text)
    except ValueError as error:
        raise UsageError(
            f"the value of `{word}` is not valid JSON: {error}",
            hint=f"write JSON, quoted for the shell, such as {key}='[\"x\"]'; for text, use = instead of :=",
        ) from None


def _read_file(file: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        values = json.loads(text)
    except OSError as error:
        raise UsageError(f"--input {file}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"--input {file} is not valid JSON: {error}") from None
    if not isinstance(values, dict):
        raise UsageError(f"--input {file}: expected a JSON object", hint='write {"key": value}')
    return values
