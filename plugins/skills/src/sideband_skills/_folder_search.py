"""The search for skills below a source folder, and reports of what it skipped."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from attrs import define, field, frozen

from ._manifest_search import find_manifest
from ._meter import LimitReached
from ._problems import Problems, shown

_MAXIMUM_DEPTH = 4
_NO_SKILLS = frozenset({"__pycache__", "node_modules", "sideband_sdk"})
# Folders with many files, in which no author puts skills. They are hidden, so only counting would search them.
_NOT_COUNTED = _NO_SKILLS | {".git", ".hg", ".mypy_cache", ".ruff_cache", ".svn", ".tox", ".venv"}
_MAXIMUM_NAMES = 5
_COUNTED_PER_FILE = 10
_HIDDEN, _DEEP, _NESTED = "in hidden folders", f"deeper than {_MAXIMUM_DEPTH} levels", "below another skill"


@frozen
class Candidate:
    """A skill's folder, its manifest and its sorted entries. ``search`` is ``None`` for a package."""

    folder: Path
    manifest: str
    entries: Sequence[os.DirEntry[str]] = field(eq=False, repr=False)
    origin: str = "folder"
    package: str = ""
    distribution: str = ""
    search: FolderSearch | None = field(default=None, eq=False, repr=False)


@define(eq=False)
class FolderSearch:
    """The search of one source folder, which is a skill or contains skills up to four levels deep.

    Hidden folders, deeper ones and the folders of a skill are not searched for skills, and links are not followed. What
    the search skips is reported once, with numbers. So is a folder without any skill: an empty result has a reason.

    Args:
        source: the folder, as the user wrote it.
        problems: receives the problems.
        others: the resolved paths of all sources. A link into one of them needs no report.
    """

    source: Path
    problems: Problems
    others: Sequence[str] = ()
    _found: int = field(default=0, init=False)
    _skipped: Counter[str] = field(factory=Counter, init=False)
    _example: str = field(default="", init=False)
    _without: list[str] = field(factory=list, init=False)
    _links: list[str] = field(factory=list, init=False)
    _countable: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._countable = self.problems.meter.limits.files * _COUNTED_PER_FILE

    def candidates(self) -> Iterator[Candidate]:
        """Yield the skills in the folder, sorted by path, then report what was skipped."""
        folder = Path(os.path.realpath(self.source))
        if not folder.is_dir():
            what = "is not a folder" if folder.exists() else "does not exist"
            hint = "pass the folder that contains SKILL.md"
            self.problems.fail("source.missing", f"`{self.source}` {what}", hint)
            return
        yield from self._skills_in(folder, 0)
        self._report(folder)

    def note_files(self, folder: Path, manifest: str, paths: Iterable[str]) -> None:
        """Count the manifests among the files of a skill. They belong to it, and are not loaded."""
        for path in paths:
            # most paths are of other files, and are not split
            if path[-8:].lower() == "skill.md" and path != manifest and _is_manifest(path.rpartition("/")[2]):
                self._skip(_NESTED, str(folder / path))

    def _skills_in(self, folder: Path, depth: int) -> Iterator[Candidate]:
        entries = entries_of(folder, self.problems)
        manifest = find_manifest(folder, entries, self.problems.meter)
        if manifest is not None:
            self._found += 1
            yield Candidate(folder, manifest, entries, search=self)
            return
        for child in entries:
            if child.is_symlink():
                self._note_link(child, depth)
            elif not child.is_dir(follow_symlinks=False) or child.name in _NO_SKILLS:
                continue
            elif child.name.startswith("."):
                self._count(child.path, _HIDDEN)
            elif depth >= _MAXIMUM_DEPTH:
                self._count(child.path, _DEEP)
            else:
                before = self._found
                yield from self._skills_in(Path(child.path), depth + 1)
                if depth == 0 and self._found == before:
                    self._without.append(child.name)

    def _note_link(self, entry: os.DirEntry[str], depth: int) -> None:
        """Note a link to a folder that may have skills, unless another source contains that folder."""
        # Below the first level, most links have nothing to do with skills.
        if not (entry.is_dir() if depth == 0 else os.path.exists(f"{entry.path}/SKILL.md")):  # noqa: PTH110
            return
        target = os.path.realpath(entry.path)
        if not any(os.path.commonpath([target, other]) == other for other in self.others):
            self._links.append(entry.name)

    def _count(self, folder: str, reason: str) -> None:
        """Count the manifests below a folder that is not searched, as long as it has few entries."""
        waiting = [folder] if Path(folder).name not in _NOT_COUNTED else []
        while waiting and self._countable > 0:
            self.problems.meter.check()
            try:
                with os.scandir(waiting.pop()) as entries:
                    for entry in sorted(islice(entries, self._countable), key=lambda one: one.name):
                        self._countable -= 1
                        if not entry.is_dir(follow_symlinks=False):
                            if _is_manifest(entry.name):
                                self._skip(reason, entry.path)
                        elif entry.name not in _NOT_COUNTED:
                            waiting.append(entry.path)
            except OSError:
                continue

    def _skip(self, reason: str, path: str) -> None:
        self._skipped[reason] += 1
        self._example = self._example or path

    def _report(self, folder: Path) -> None:
        if not self._found and not self.problems.found:
            without = f"; {_named(self._without, 'folder')} without SKILL.md" if self._without else ""
            hint = "pass a folder that contains SKILL.md, or whose folders do"
            self.problems.warn("source.empty", f"`{self.source}` contains no skill{without}", hint)
        elif self._found and self._without:
            reason = f"no skill in {_named(self._without, 'folder')}: no SKILL.md"
            self.problems.warn("manifest.missing", reason, "add one, or move the folder elsewhere")
        if self._links:
            reason = f"skipped {_named(self._links, 'symbolic link')} to folders, which are not followed"
            self.problems.warn("source.link", reason, "add these folders as other sources")
        if self._countable <= 0 and not self._skipped:
            reason = f"hidden or deep folders of `{self.source}` have too many entries to look for skills"
            self.problems.warn("source.skipped", reason, "add a folder that contains skills as another source")
        elif self._skipped:
            total = self._skipped.total()
            parts = ", ".join(f"{count:,} {reason}" for reason, count in self._skipped.items())
            least = "at least " if self._countable <= 0 else ""
            example = Path(self._example).parent
            another = shown(str(self._source_of(example)), 200)
            self.problems.warn(
                "source.skipped",
                f"skipped {least}{total:,} {'skill' if total == 1 else 'skills'}: {parts}; for example "
                f"{shown(str(example.relative_to(folder)))}",
                f"to load them, add their folder as another source, such as {another}",
            )

    def _source_of(self, skill: Path) -> Path:
        """Return a source that finds a skipped skill: the folder around it, unless that would skip it again."""
        folder = skill.parent
        is_skill = find_manifest(folder, entries_of(folder, self.problems), self.problems.meter) is not None
        return skill if is_skill or skill.name.startswith(".") else folder


def entries_of(folder: Path, problems: Problems) -> list[os.DirEntry[str]]:
    """Return the entries of a folder, sorted by name; none, with a problem, if it cannot be listed.

    Raises:
        LimitReached: if all skills together exceed a limit.
    """
    try:
        return problems.meter.entries(folder)
    except OSError as error:
        problems.warn("files.unreadable", f"cannot list `{folder}`: {error.strerror}")
    except LimitReached as limit:
        # a folder with too many entries is skipped; what limits all skills ends the search
        problems.meter.check_total()
        problems.fail(f"limit.{limit.limit}", f"`{folder}`: {limit.reason}")
    return []


def _is_manifest(name: str) -> bool:
    return name.lower() == "skill.md"


def _named(names: Sequence[str], noun: str) -> str:
    listed = ", ".join(f"`{name}`" for name in names[:_MAXIMUM_NAMES])
    more = f" and {len(names) - _MAXIMUM_NAMES:,} more" if len(names) > _MAXIMUM_NAMES else ""
    return f"{len(names):,} {noun}{'' if len(names) == 1 else 's'} ({listed}{more})"
