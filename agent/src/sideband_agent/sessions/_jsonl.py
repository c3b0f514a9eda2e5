"""Read and write JSON Lines: one object per line. Files may be truncated, damaged or malicious."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen
from sideband.errors import StateUnwritable
from sideband.state import replace_file

from ._errors import SessionFileExists, SessionUnreadable

_LINE_BYTES = 64 << 20
_DEPTH = 100
_TOO_DEEP = f"nested deeper than {_DEPTH} levels"
_LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


@frozen
class Line:
    """A line of a file.

    Attributes:
        number: the number of the line, from 1.
        value: the object, or ``None`` if the line is invalid.
        problem: why the line is invalid, or what was repaired; empty if it is valid.
    """

    number: int
    value: dict[str, Any] | None
    problem: str = ""


def dump_line(value: Mapping[str, Any]) -> str:
    """Serialize an object as one line with a newline."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate: JSON can escape it, UTF-8 cannot encode it
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text + "\n"


def parse_lines(lines: Iterable[bytes | str]) -> Iterator[Line]:
    """Parse the lines of a file. Empty lines are skipped."""
    for number, line in enumerate(lines, start=1):
        raw = line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")
        if raw.strip():
            yield _parse(number, raw)


def read_file(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, including newlines. A line that is too long is truncated, and rejected later.

    Raises:
        SessionUnreadable: if the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            while line := file.readline(_LINE_BYTES + 1):
                rest = line
                while len(rest) > _LINE_BYTES and not rest.endswith(b"\n"):
                    rest = file.readline(_LINE_BYTES + 1)
                yield line
    except OSError as error:
        raise SessionUnreadable(error.strerror or str(error), path=path, hint="choose a readable file") from error


def write_file(path: Path, lines: Iterable[str], *, overwrite: bool = False) -> None:
    """Write a file atomically, readable by its owner only.

    Args:
        path: the file.
        lines: its lines, including newlines.
        overwrite: whether an existing file may be replaced.

    Raises:
        SessionFileExists: if the file exists and must not be replaced.
        StateUnwritable: if it cannot be written.
    """
    try:
        replace_file(path, (line.encode() for line in lines), overwrite=overwrite)
    except FileExistsError as error:
        raise SessionFileExists(path) from error
    except OSError as error:
        raise StateUnwritable(path, error) from error


def _parse(number: int, raw: bytes) -> Line:
    try:
        value = _object(raw)
    except RecursionError:
        problem = _TOO_DEEP
    except UnicodeDecodeError:
        problem = "not UTF-8"
    except ValueError as error:
        problem = str(error)
    else:
        if _LONE_SURROGATE.search(raw) and (whole := _without_lone_surrogates(value)) != value:
            return Line(number, whole, "lone surrogates were replaced")
        return Line(number, value)
    return Line(number, None, problem if raw.endswith(b"\n") else f"the file is truncated here: {problem}")


def _object(raw: bytes) -> dict[str, Any]:
    if len(raw) > _LINE_BYTES:
        raise ValueError(f"longer than {_LINE_BYTES >> 20} MiB")
    try:
        value = _decode(raw.decode("utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - the content is wrong, not the type
    if _is_deeper(value, _DEPTH):
        raise ValueError(_TOO_DEEP)
    return value


def _decode(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse, parse_float=_finite)


def _refuse(name: str) -> Any:
    raise ValueError(f"invalid number: {name}")


def _finite(text: str) -> float:
    number = float(text)
    if number in {float("inf"), float("-inf")}:
        raise ValueError(f"number out of range: {text[:20]}")
    return number


def _is_deeper(value: Any, depth: int) -> bool:
    level: list[Any] = [value]
    for _ in range(depth):
        level = [
            inner
            for one in level
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def _without_lone_surrogates(value: Any) -> Any:
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
