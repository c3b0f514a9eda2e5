"""The instruction files that apply in a folder: its own first, then those of its parents in the repository."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from attrs import define, evolve, field, frozen

from ._confined import MAX_SIZE, read_file
from ._imports import named_files, resolved_name
from ._text import count_invisible, visible

_NAMES = ("AGENTS.md", "CLAUDE.md", ".cursorrules")
_PROJECT_FILE = "sideband.toml"
_RULES = ".cursor/rules"
_ALWAYS = re.compile(r"^alwaysApply:[ \t]*true[ \t]*$", re.MULTILINE)
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)?---[ \t]*(?:\n|\Z)", re.DOTALL)
_MAX_RULES = 50
_MAX_DEPTH = 5
_MAX_FILES = 100


@frozen(slots=False)
class InstructionFile:
    """A file with instructions for agents.

    Attributes:
        root: the folder that confines it: the repository, the trusted project, or the working directory.
        name: its path below the root, with ``/``.
        content: its bytes; empty if it was not read.
        problem: why it is not used; empty if it can be.
        importer: the name of the file that names it; empty for one that was found by its own name.
        in_project: whether it belongs to the trusted project, so that its content needs no answer of its own.
    """

    root: Path
    name: str
    content: bytes = field(default=b"", repr=False)
    problem: str = ""
    importer: str = ""
    in_project: bool = False

    @property
    def path(self) -> Path:
        """Its absolute path."""
        return self.root / self.name

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of its content."""
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def text(self) -> str:
        """What agents read: its visible text, without the front matter of a rule."""
        text = visible(self._decoded).strip()
        return _FRONT_MATTER.sub("", text, count=1).strip() if self._is_rule else text

    @property
    def invisible(self) -> int:
        """How many invisible characters its text does not contain."""
        return count_invisible(self._decoded)

    @property
    def counts_alone(self) -> bool:
        """Whether its name is one of those that count without being named by another file."""
        return self.path.name in _NAMES

    @property
    def always_applies(self) -> bool:
        """Whether it is a rule for all tasks. Whether another one applies depends on the files of a task."""
        head = _FRONT_MATTER.match(visible(self._decoded))
        return head is not None and _ALWAYS.search(head[1] or "") is not None

    @property
    def _decoded(self) -> str:
        return self.content.decode("utf-8-sig", errors="replace")

    @property
    def _is_rule(self) -> bool:
        return f"{_RULES}/" in self.name


def find_instructions(folder: Path | None, project: Path | None = None) -> list[InstructionFile]:
    """Return the instruction files that apply in a folder, the nearest first, each followed by the files that it names.

    In each folder, the first of AGENTS.md, CLAUDE.md, .cursorrules and the rules in .cursor/rules counts. A later one
    that names an earlier one with ``@`` counts in its place. Files are read once, so that what was shown is what is
    used. A file that cannot be used is returned with its problem.

    Args:
        folder: the working directory.
        project: the folder of the trusted project, if there is one.
    """
    here = Path(os.path.realpath(folder)) if folder else None
    trusted = Path(os.path.realpath(project)) if project else None
    places: list[tuple[Path, Path]] = []
    if here is not None:
        root = _root(here, trusted)
        places = [(root, one) for one in (here, *here.parents) if one.is_relative_to(root)]
    if trusted is not None and all(one != trusted for _, one in places):
        places.append((trusted, trusted))
    found: dict[Path, InstructionFile] = {}
    covers_below = trusted is not None and _is_project(trusted)
    for root, one in places:
        collected = _Collected(root, trusted if covers_below or one == trusted else None, found)
        for file in _chosen(collected, one):
            collected.add(file)
    return list(found.values())


def _is_project(folder: Path) -> bool:
    """Return whether trust in a folder covers the instructions in folders below it.

    A folder without a project file and outside of repositories, such as a home folder, may contain anything.
    """
    in_repository = any(os.path.lexists(one / ".git") for one in (folder, *folder.parents))
    return in_repository or (folder / _PROJECT_FILE).is_file()


def _root(folder: Path, project: Path | None) -> Path:
    repository = next((one for one in (folder, *folder.parents) if os.path.lexists(one / ".git")), None)
    if repository is not None:
        return repository
    return project if project is not None and folder.is_relative_to(project) else folder


def _chosen(collected: _Collected, folder: Path) -> Sequence[InstructionFile]:
    """Return the files that count in a folder."""
    prefix = "" if folder == collected.root else f"{folder.relative_to(collected.root).as_posix()}/"
    files = [file for name in _NAMES if (file := collected.read(f"{prefix}{name}")) is not None]
    for position, file in enumerate(files):
        earlier = {one.name for one in files[:position]}
        if earlier & {resolved_name(file.root, file.path.parent, name)[0] for name in named_files(file.text)}:
            return [file]
    usable = [file for file in files if not file.problem]
    return usable[:1] or files[:1] or list(_rules(collected, prefix))


def _rules(collected: _Collected, prefix: str) -> Iterator[InstructionFile]:
    """Yield the rules that always apply."""
    folder = collected.root / f"{prefix}{_RULES}"
    if not Path(os.path.realpath(folder)).is_relative_to(collected.root):
        return
    try:
        names = sorted(one.name for one in folder.iterdir() if one.suffix in (".md", ".mdc"))
    except OSError:
        return
    for name in names[:_MAX_RULES]:
        file = collected.read(f"{prefix}{_RULES}/{name}")
        if file is not None and file.always_applies:
            yield file


@define
class _Collected:
    """The files found so far, by their paths, and those of one folder, with what they name below the root."""

    root: Path
    project: Path | None
    found: dict[Path, InstructionFile]
    _read: dict[str, InstructionFile | None] = field(factory=dict, init=False)

    def read(self, name: str) -> InstructionFile | None:
        """Read a file once. Return ``None`` if it does not exist."""
        if name not in self._read:
            self._read[name] = self._load(name)
        return self._read[name]

    def _load(self, name: str) -> InstructionFile | None:
        reading = read_file(self.root, name, MAX_SIZE)
        if reading is None:
            return None
        problem, content = reading.problem, reading.content
        if len(content) > MAX_SIZE:
            problem, content = f"larger than {MAX_SIZE >> 20} MiB", b""
        elif b"\0" in content:
            problem, content = "not a text", b""
        return InstructionFile(self.root, name, content, problem, in_project=self._in_project(name, problem))

    def _in_project(self, name: str, problem: str) -> bool:
        """Return whether a file is the trusted project's: not one of a repository in it, nor linked from elsewhere."""
        if self.project is None or not self.project.is_relative_to(self.root):
            return False
        nominal = self.root / name
        # The content of a link counts as that of the file it leads to. Without content, there is only the name.
        paths = (nominal,) if problem else (nominal, Path(os.path.realpath(nominal)))
        return all(one.is_relative_to(self.project) for one in paths)

    def add(self, file: InstructionFile, importer: str = "", depth: int = 0) -> None:
        """Add a file, then those that it names."""
        if file.path in self.found or len(self.found) >= _MAX_FILES:
            return
        self.found[file.path] = evolve(file, importer=importer)
        for name in named_files(file.text)[:_MAX_FILES]:
            self._import(file, name, depth + 1)

    def _import(self, file: InstructionFile, name: str, depth: int) -> None:
        target, problem = resolved_name(self.root, file.path.parent, name)
        named = self.read(target) if target else None
        if named is not None and depth <= _MAX_DEPTH:
            self.add(named, file.name, depth)
        elif (named is not None or problem) and len(self.found) < _MAX_FILES:
            problem = problem or f"named by more than {_MAX_DEPTH} files, one in another"
            missing = InstructionFile(self.root, name, b"", problem, file.name, file.in_project)
            self.found.setdefault(missing.path, missing)
