"""Split a skill's file into frontmatter and body, and read the frontmatter even if it is not valid YAML."""

from __future__ import annotations

import re
from typing import Any

from attrs import Factory, define, frozen

from ._problems import Problems, shown
from ._yaml import NotYaml, read_yaml

_MAXIMUM_FRONTMATTER = 64 << 10
_FENCE = re.compile(r"-{3,}[ \t]*\Z")
_END = re.compile(r"(-{3,}|\.{3})[ \t]*\Z")
_KEY = re.compile(r"(?P<key>[A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(?P<value>.*))?\Z", re.DOTALL)
_ITEM = re.compile(r"-[ \t]+(?P<value>.*)\Z", re.DOTALL)
_BLOCK = re.compile(r"[|>][+-]?[0-9]?\Z")


@frozen
class SkillDocument:
    """The frontmatter and the body of a file. ``values`` is ``None`` without frontmatter."""

    values: dict[str, Any] | None
    body: str


def read_document(text: str, problems: Problems, *, file: str) -> SkillDocument:
    """Read frontmatter between two lines ``---``, and the body. Add oddities to ``problems``; never raise."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.strip()), None)
    if start is None or not _FENCE.match(lines[start]):
        return SkillDocument(None, text.strip())
    end = next((number for number in range(start + 1, len(lines)) if _END.match(lines[number])), None)
    if end is None:
        end = _find_end(lines, start)
        if end == start + 1:
            # a horizontal rule followed by text
            return SkillDocument(None, text.strip())
        problems.warn(
            "frontmatter.open", "the frontmatter is not closed", "add a line `---` after its last key", file=file
        )
        body = lines[end:]
    else:
        body = lines[end + 1 :]
    values = read_mapping("\n".join(lines[start + 1 : end]), problems, file=file)
    return SkillDocument(values, "\n".join(body).strip())


def _find_end(lines: list[str], start: int) -> int:
    """Return the index of the first line after the fence that cannot be part of frontmatter."""
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if not line.strip() or not (line[0] in " \t-" or _KEY.match(line)):
            return number
    return len(lines)


def read_mapping(text: str, problems: Problems, *, file: str) -> dict[str, Any]:
    """Read keys and values as YAML, or line by line if the text is not valid YAML."""
    if len(text) > _MAXIMUM_FRONTMATTER:
        problems.warn(
            "frontmatter.large",
            f"the frontmatter has {len(text):,} characters; only the first {_MAXIMUM_FRONTMATTER:,} were read",
            "move text into the body",
            file=file,
        )
        text = text[:_MAXIMUM_FRONTMATTER]
    if not text.strip():
        return {}
    try:
        values, repeated = read_yaml(text)
    except NotYaml as error:
        problems.warn(
            "frontmatter.yaml",
            f"the frontmatter is not valid YAML ({error}); it was read line by line",
            "quote values that contain `: ` or start with a special character",
            file=file,
        )
        return _LineReader(problems, file).read(text)
    for key in repeated:
        problems.warn("frontmatter.repeated", f"duplicate key {shown(key)}; the last value is used", file=file)
    return values


@define
class _LineReader:
    """A lenient reader of ``key: value``, indented lines below it, ``- items`` and ``| blocks``."""

    problems: Problems
    file: str
    values: dict[str, Any] = Factory(dict)

    def read(self, text: str) -> dict[str, Any]:
        key: str | None = None
        first, below = "", list[str]()
        for line in text.splitlines():
            found = _KEY.match(line)
            if found:
                self._store(key, first, below)
                key, first, below = found["key"], (found["value"] or "").strip(), []
            elif key is not None and (not line.strip() or line[0] in " \t-"):
                below.append(line)
            elif line.strip() and not line.lstrip().startswith("#"):
                self.problems.warn(
                    "frontmatter.line",
                    f"the line {shown(line)} of the frontmatter is invalid and was ignored",
                    "write `key: value`",
                    file=self.file,
                )
        self._store(key, first, below)
        return self.values

    def _store(self, key: str | None, first: str, below: list[str]) -> None:
        if key is None:
            return
        if key in self.values:
            self.problems.warn(
                "frontmatter.repeated", f"duplicate key {shown(key)}; the last value is used", file=self.file
            )
        self.values[key] = _value(first, below)


def _value(first: str, below: list[str]) -> Any:
    lines = [line.strip() for line in below]
    if _BLOCK.match(first):
        return ("\n" if first.startswith("|") else " ").join(lines).strip()
    filled = [line for line in lines if line]
    if not first and filled:
        items = [_ITEM.match(line) for line in filled]
        if all(items):
            return [_scalar(item["value"]) for item in items if item]
        pairs = [_KEY.match(line) for line in filled]
        if all(pairs):
            return {pair["key"]: _scalar(pair["value"] or "") for pair in pairs if pair}
    if first.startswith("[") and first.endswith("]") and first.count("[") == 1:
        return [_scalar(item) for item in first[1:-1].split(",") if item.strip()]
    return _scalar(" ".join([first, *filled]))


def _scalar(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text
