"""Docstring parsing: the first paragraph, and the descriptions of parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import Factory, frozen

_PARAMETERS = frozenset({"args", "arguments", "keyword arguments", "parameters", "params"})
_SECTIONS = _PARAMETERS | {"example", "examples", "note", "notes", "raises", "return", "returns", "yields"}
_GOOGLE_HEAD = re.compile(r"(?P<name>[A-Za-z ]+):\s*\Z")
# No two repetitions of the same characters may meet, or the time would be quadratic.
_GOOGLE_ITEM = re.compile(r"(?P<name>\*{0,2}\w+)\s*(?:\([^)]*\)\s*)?:\s*(?P<text>.*)\Z")
_NUMPY_RULE = re.compile(r"-{3,}\s*\Z")
_NUMPY_ITEM = re.compile(r"(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?\Z")
_SPHINX_ITEM = re.compile(r":param(?:\s+[^:\s]+)*?\s+(?P<name>\*{0,2}\w+)\s*:\s*(?P<text>.*)\Z")


@frozen
class Docstring:
    """The first paragraph of a docstring on one line, and the descriptions of parameters by name."""

    summary: str = ""
    parameters: Mapping[str, str] = Factory(dict)


def read_docstring(text: str | None) -> Docstring:
    r"""Parse a dedented docstring in Google, NumPy or Sphinx style. Any text is accepted.

    Example:
        >>> read_docstring("Stars.\n\nArgs:\n    repo: owner/name\n").parameters
        {'repo': 'owner/name'}
    """
    if not text:
        return Docstring()
    lines = text.splitlines()
    return Docstring(_summary(lines), {**_sphinx(lines), **_numpy(lines), **_google(lines)})


def _summary(lines: list[str]) -> str:
    words: list[str] = []
    for number, line in enumerate(lines):
        if words and (not line.strip() or _is_google_head(line) or _is_numpy_head(lines, number)):
            break
        if _SPHINX_ITEM.match(line.strip()):
            break
        words += line.split()
    return " ".join(words)


def _is_google_head(line: str) -> bool:
    head = _GOOGLE_HEAD.match(line)
    return head is not None and head["name"].strip().lower() in _SECTIONS


def _is_numpy_head(lines: list[str], number: int) -> bool:
    return number + 1 < len(lines) and bool(lines[number].strip()) and bool(_NUMPY_RULE.match(lines[number + 1]))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _google(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    inside, depth, name = False, 0, ""
    for line in lines:
        head = _GOOGLE_HEAD.match(line) if _indent(line) == 0 else None
        if head:
            inside = head["name"].strip().lower() in _PARAMETERS
            depth, name = 0, ""
        elif inside and line.strip():
            if _indent(line) == 0:
                inside = False
                continue
            item = _GOOGLE_ITEM.match(line.strip())
            depth = depth or _indent(line)
            if item and _indent(line) <= depth:
                name = item["name"].lstrip("*")
                found[name] = [item["text"]]
            elif name:
                found[name].append(line.strip())
    return _joined(found)


def _numpy(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    inside, names = False, list[str]()
    for number, line in enumerate(lines):
        if _is_numpy_head(lines, number):
            inside = line.strip().lower() in ("parameters", "other parameters")
            names = []
        elif inside and line.strip() and not _NUMPY_RULE.match(line):
            item = _NUMPY_ITEM.match(line) if _indent(line) == 0 else None
            if item:
                names = [name.strip().lstrip("*") for name in item["names"].split(",")]
                found.update({name: [] for name in names})
            else:
                for name in names:
                    found[name].append(line.strip())
    return _joined(found)


def _sphinx(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        item = _SPHINX_ITEM.match(line.strip())
        if item:
            name = item["name"].lstrip("*")
            found[name] = [item["text"]]
        elif name and line.strip() and not line.lstrip().startswith(":"):
            found[name].append(line.strip())
        else:
            name = ""
    return _joined(found)


def _joined(found: dict[str, list[str]]) -> dict[str, str]:
    return {name: " ".join(text).strip() for name, text in found.items() if " ".join(text).strip()}
