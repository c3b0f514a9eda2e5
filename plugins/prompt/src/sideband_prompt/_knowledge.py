"""The documents that a model can consult, and their metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, Literal

from attrs import field, frozen
from pydantic import BaseModel, ConfigDict, ValidationError
from sideband.validation import problem_text

from ._prompt_levels import PromptLevel
from ._reading import Reading, is_inside
from ._text import one_line

Priority = Literal["high", "normal", "low"]

_FOLDER = "knowledge"
_INDEX = "index.yaml"
_LARGEST_INDEX = 64 << 10
_DEEPEST = 8
_HEAD = 4 << 10
_MAX = 500
_LONGEST_TITLE = 120
_HEADING = re.compile(r"^#[ \t]+(\S.*)$", re.MULTILINE)
_RANKS: dict[str, int] = {"high": 0, "normal": 1, "low": 2}


class _IndexEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    always_load: bool = False
    priority: Priority = "normal"
    tags: tuple[str, ...] = ()


@frozen
class KnowledgeDocument:
    """A document.

    Attributes:
        path: its path below the folder of documents, with ``/``. Identifies it.
        title: its first heading, or its file name.
        level: the level that contains it.
        always_load: whether every prompt contains it in full.
        priority: its rank in prompts and results.
        tags: words for the search.
    """

    path: str
    title: str
    level: PromptLevel = field(repr=False)
    always_load: bool = False
    priority: Priority = "normal"
    tags: tuple[str, ...] = ()

    @property
    def rank(self) -> tuple[int, str]:
        """The sort key among all documents."""
        return _RANKS[self.priority], self.path

    def read(self, limit: int) -> Reading | None:
        """Read its text. See ``read_text``."""
        return self.level.read(f"{_FOLDER}/{self.path}", limit)


@frozen
class Library:
    """All documents, sorted by rank.

    Attributes:
        documents: of several documents with the same path, the one of the most specific level.
        notices: what was skipped, and why.
    """

    documents: tuple[KnowledgeDocument, ...] = ()
    notices: tuple[str, ...] = ()


def find_documents(levels: Sequence[PromptLevel]) -> Library:
    """Find the documents listed in ``knowledge/index.yaml``, or, without an index, ``*.md`` and ``*/index.md``."""
    found: dict[str, KnowledgeDocument] = {}
    notices: list[str] = []
    for level in levels:
        for entry in _entries(level, notices)[:_MAX]:
            if entry.path not in found and (document := _document(level, entry, notices)) is not None:
                found[entry.path] = document
    return Library(tuple(sorted(found.values(), key=lambda document: document.rank)), tuple(notices))


def _entries(level: PromptLevel, notices: list[str]) -> list[_IndexEntry]:
    index = level.read(f"{_FOLDER}/{_INDEX}", _LARGEST_INDEX)
    if index is None:
        entries = [_IndexEntry(path=path) for path in _scan(level)]
    elif index.notice:
        notices.append(index.notice)
        entries = []
    else:
        entries = list(_read_index(level, index.text, notices))
    if len(entries) > _MAX:
        notices.append(f"{len(entries) - _MAX} documents of the {level.name} folder skipped: the limit is {_MAX}")
    return entries


def _scan(level: PromptLevel) -> Iterator[str]:
    for name in level.names(_FOLDER):
        if name.endswith(".md"):
            yield name
        elif "index.md" in level.names(f"{_FOLDER}/{name}"):
            yield f"{name}/index.md"


def _read_index(level: PromptLevel, text: str, notices: list[str]) -> Iterator[_IndexEntry]:
    where = f"{_INDEX} of the {level.name} folder"
    try:
        found = _parse_yaml(text)
    except ValueError as error:
        notices.append(f"{where} was not read: {one_line(str(error), 200)}")
        return
    for number, item in enumerate(found, start=1):
        try:
            entry = _IndexEntry.model_validate(item)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            problem = f"{'.'.join(map(str, first['loc'])) or 'entry'}: {problem_text(first)}"
            notices.append(f"entry {number} of {where} was skipped: {one_line(problem, 200)}")
            continue
        if is_inside(entry.path):
            yield entry.model_copy(update={"path": str(PurePosixPath(entry.path))})
        else:
            notices.append(f"entry {number} of {where} was skipped: its path leads out of the folder")


def _parse_yaml(text: str) -> list[Any]:
    import yaml  # noqa: PLC0415  only needed if there is an index

    # base loaders create only strings, lists and mappings
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        depth = 0
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            # deep nesting crashes the process in the C implementation
            if depth > _DEEPEST:
                raise ValueError(f"nested deeper than {_DEEPEST} levels")
        found = yaml.load(text, Loader=loader)  # noqa: S506  it is a base loader
    except (yaml.YAMLError, UnicodeError) as error:
        raise ValueError(f"invalid YAML: {error}") from error
    if not isinstance(found, list):
        raise ValueError("expected a list of documents")  # noqa: TRY004  the text is wrong, not an argument
    return found


def _document(level: PromptLevel, entry: _IndexEntry, notices: list[str]) -> KnowledgeDocument | None:
    head = level.read(f"{_FOLDER}/{entry.path}", _HEAD)
    if head is None or (head.notice and not head.text):
        notices.append(head.notice if head else f"{entry.path} is listed in {_INDEX} but does not exist")
        return None
    heading = _HEADING.search(head.text)
    path = PurePosixPath(entry.path)
    name = path.parent.name if path.name == "index.md" and path.parent.name else path.stem
    return KnowledgeDocument(
        path=entry.path,
        title=one_line(heading[1] if heading else name, _LONGEST_TITLE),
        level=level,
        always_load=entry.always_load,
        priority=entry.priority,
        tags=tuple(tag for one in entry.tags if (tag := one_line(one, _LONGEST_TITLE))),
    )
