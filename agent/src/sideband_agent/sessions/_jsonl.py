"""JSON Lines: files of objects, one a line, that may be torn, damaged or hostile."""

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
_TOO_DEEP = f"it is nested deeper than {_DEPTH} levels"
_LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


@frozen
class Line:
    """A line of a file.

    Attributes:
        number: from 1.
        value: the object that it holds; ``None`` if it holds none.
        problem: why it holds none, or what was mended in it; empty if nothing is wrong.
    """

    number: int
    value: dict[str, Any] | None
    problem: str = ""


def dump_line(value: Mapping[str, Any]) -> str:
    """An object as one line, with its end."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character: JSON can say it, UTF-8 can't
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text + "\n"


def parse_lines(lines: Iterable[bytes | str]) -> Iterator[Line]:
    """What the lines of a file hold. Empty ones are passed over."""
    for number, line in enumerate(lines, start=1):
        raw = line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")
        if raw.strip():
            yield _parse(number, raw)


def read_file(path: Path) -> Iterator[bytes]:
    """The lines of a file, each with its end. Of one that is too long only a part, which is refused later.

    Raises:
        SessionUnreadable: the file can't be read.
    """
    try:
        with path.open("rb") as file:
            while line := file.readline(_LINE_BYTES + 1):
                rest = line
                while len(rest) > _LINE_BYTES and not rest.endswith(b"\n"):
                    rest = file.readline(_LINE_BYTES + 1)
                yield line
    except OSError as error:
        raise SessionUnreadable(
            error.strerror or str(error), path=path, hint="name a file that you can read"
        ) from error


def write_file(path: Path, lines: Iterable[str], *, overwrite: bool = False) -> None:
    """Write a file whole or not at all, for its owner only.

    Args:
        path: the file.
        lines: its lines, each with its end.
        overwrite: whether it may be there already.

    Raises:
        SessionFileExists: it is, and may not.
        StateUnwritable: it can't be written.
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
        problem = "it is not UTF-8"
    except ValueError as error:
        problem = str(error)
    else:
        if _LONE_SURROGATE.search(raw) and (whole := _without_lone_surrogates(value)) != value:
            return Line(number, whole, "halves of characters in it were replaced")
        return Line(number, value)
    return Line(number, None, problem if raw.endswith(b"\n") else f"the file is torn there: {problem}")


def _object(raw: bytes) -> dict[str, Any]:
    if len(raw) > _LINE_BYTES:
        raise ValueError(f"it is longer than {_LINE_BYTES >> 20} MiB")
    try:
        value = _decode(raw.decode("utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - it is the content that is wrong
    if _is_deeper(value, _DEPTH):
        raise ValueError(_TOO_DEEP)
    return value


def _decode(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse, parse_float=_finite)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if number in {float("inf"), float("-inf")}:
        raise ValueError(f"{text[:20]} is too large a number")
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
