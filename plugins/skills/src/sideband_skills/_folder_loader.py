"""The skill loader for folders and installed packages. Each skill is loaded independently of the others."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
from attrs import define, field, frozen
from sideband.loading import LoadedSkills, SkillProblem, SkillSources, SkillSpec

from ._lints import lint
from ._manifest import manifest_file, read_manifest
from ._problems import Problems
from ._requirements import read_requirements
from ._skill_files import list_files
from ._tool_discovery import Module, find_tools, read_modules

if TYPE_CHECKING:
    from sideband.ops import OpFamily

_MAXIMUM_DEPTH = 4
_NO_SKILLS = frozenset({"__pycache__", "node_modules"})


@frozen
class _Candidate:
    """A folder that may be a skill."""

    folder: Path
    origin: str = "folder"
    package: str = ""
    distribution: str = ""


@frozen
class _Read:
    """A skill, and the syntax trees of its modules for the lints."""

    spec: SkillSpec
    modules: tuple[Module, ...]


@define
class FolderLoader:
    """Loads skills in the open Agent Skills format, in AgentOS's format or with a ``skill.yaml``, without running code.

    Example:
        >>> loaded = await FolderLoader().load(SkillSources(folders=(Path("skills"),)))
        >>> [tool.full_name for skill in loaded.skills for tool in skill.tools]
        ['github_stars.stars']
    """

    name: str = field(default="skills", init=False)

    async def load(self, sources: SkillSources) -> LoadedSkills:
        """Load all skills from these sources.

        A source folder is a skill, or contains skills up to four levels deep. If two skills have the same name part,
        both are skipped, with a problem that names both. The content of a skill never raises an exception.
        """
        return await anyio.to_thread.run_sync(_load, sources, abandon_on_cancel=True)

    async def validate(self, folder: Path, *, families: Iterable[OpFamily] = ()) -> tuple[SkillProblem, ...]:
        """Return all problems of a skill: those of ``load``, and code that would fail at run time.

        Args:
            folder: the skill's folder.
            families: the installed op families, used to check op names, arguments and capabilities; empty for no check.
        """
        return await anyio.to_thread.run_sync(_validate, folder, tuple(families), abandon_on_cancel=True)


def _load(sources: SkillSources) -> LoadedSkills:
    problems: list[SkillProblem] = []
    by_key: dict[str, list[SkillSpec]] = {}
    for candidate in _unique(_candidates(sources, problems)):
        read = _read_guarded(candidate, problems)
        if read is not None:
            by_key.setdefault(read.spec.key, []).append(read.spec)
    for key, same in by_key.items():
        if len(same) > 1:
            problems.append(_duplicate(key, same))
    skills = tuple(same[0] for _, same in sorted(by_key.items()) if len(same) == 1)
    return LoadedSkills(skills, tuple(problems))


def _duplicate(key: str, same: list[SkillSpec]) -> SkillProblem:
    places = " and ".join(f"`{spec.source}` ({spec.origin})" for spec in same)
    return SkillProblem(
        source=str(same[0].source),
        code="skill.duplicate",
        reason=f"duplicate skill `{key}` in {places}; none of them is loaded",
        hint="rename one of them, or remove its folder from the sources",
        fatal=True,
    )


def _unique(candidates: Iterable[_Candidate]) -> Iterator[_Candidate]:
    """Yield each folder once, even if several sources contain it."""
    seen: set[Path] = set()
    for candidate in candidates:
        if candidate.folder not in seen:
            seen.add(candidate.folder)
            yield candidate


def _candidates(sources: SkillSources, found: list[SkillProblem]) -> Iterator[_Candidate]:
    for source in sources.folders:
        problems = Problems(str(source))
        yield from (_Candidate(folder) for folder in _skill_folders(source, problems))
        found += problems.found
    for package in sources.packages:
        origin = f"package {package.distribution} {package.version}"
        if manifest_file(package.path) is None:
            problems = Problems(str(package.path))
            problems.fail("manifest.missing", f"{origin} declares a skill but has no SKILL.md", "add it to the wheel")
            found += problems.found
        else:
            folder = Path(os.path.realpath(package.path))
            yield _Candidate(folder, origin, package.name, package.distribution)


def _skill_folders(source: Path, problems: Problems) -> Iterator[Path]:
    folder = Path(os.path.realpath(source))
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        problems.fail("source.missing", f"`{source}` {what}", "pass the folder that contains SKILL.md")
    elif manifest_file(folder) is not None:
        yield folder
    else:
        if any(entry.name.endswith((".py", ".md")) and entry.is_file() for entry in _entries(folder, problems)):
            problems.warn("manifest.missing", f"`{source}` is not a skill: it has no SKILL.md", "add one")
        yield from _skills_below(folder, problems)


def _skills_below(source: Path, problems: Problems) -> Iterator[Path]:
    for child in _entries(source, problems):
        if child.is_symlink() and child.is_dir():
            problems.warn(
                "source.link",
                f"`{child.name}` is a symbolic link to a folder, which is not followed",
                "add that folder as another source",
            )
        elif child.is_dir() and not child.name.startswith(".") and child.name not in _NO_SKILLS:
            below = list(_skills_in(Path(child.path), problems, depth=1))
            yield from below
            if not below:
                problems.warn("manifest.missing", f"`{child.name}` is not a skill: it has no SKILL.md", "add one")


def _skills_in(folder: Path, problems: Problems, *, depth: int) -> Iterator[Path]:
    if manifest_file(folder) is not None:
        yield folder
    elif depth < _MAXIMUM_DEPTH:
        for child in _entries(folder, problems):
            if child.is_dir(follow_symlinks=False) and not child.name.startswith(".") and child.name not in _NO_SKILLS:
                yield from _skills_in(Path(child.path), problems, depth=depth + 1)


def _entries(folder: Path, problems: Problems) -> list[os.DirEntry[str]]:
    try:
        return sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        problems.warn("files.unreadable", f"cannot list `{folder}`: {error.strerror}")
        return []


def _read_guarded(candidate: _Candidate, found: list[SkillProblem]) -> _Read | None:
    problems = Problems(str(candidate.folder))
    try:
        read = _read(candidate, problems)
    except Exception as error:  # noqa: BLE001 - a failure must not stop the other skills from loading
        problems.fail(
            "unreadable", f"loading failed with {type(error).__name__}: {error}", "report this, with the skill"
        )
        read = None
    if read is None:
        found += problems.found
    return read


def _read(candidate: _Candidate, problems: Problems) -> _Read | None:
    folder = candidate.folder
    listed = list_files(folder, problems)
    file = manifest_file(folder)
    if file is None:
        problems.fail("manifest.missing", "the folder has no SKILL.md", "add one, with `name` and `description`")
    if file is None or not listed.complete:
        return None
    manifest = read_manifest(folder, file, listed.paths, problems, package=candidate.package)
    if manifest is None:
        return None
    modules = read_modules(folder, listed.paths, problems)
    requirements = read_requirements(modules, candidate.distribution, problems)
    if any(problem.fatal for problem in problems.found):
        return None
    tools = find_tools(manifest.key, modules, problems)
    spec = SkillSpec(
        name=manifest.name,
        key=manifest.key,
        description=manifest.description,
        source=folder,
        origin=candidate.origin,
        files=listed.paths,
        tools=tools.tools,
        capabilities=manifest.capabilities,
        families=tools.families,
        timeout=manifest.timeout,
        requirements=requirements.packages,
        requires_python=requirements.python,
        memory=manifest.memory,
        alone=manifest.alone,
        connections=manifest.connections,
        allowed_tools=manifest.allowed_tools,
        license=manifest.license,
        compatibility=manifest.compatibility,
        metadata=manifest.metadata,
        instructions=manifest.instructions,
        problems=tuple(problems.found),
    )
    return _Read(spec, modules)


def _validate(folder: Path, families: tuple[OpFamily, ...]) -> tuple[SkillProblem, ...]:
    found: list[SkillProblem] = []
    source = Path(os.path.realpath(folder))
    if not source.is_dir():
        problems = Problems(str(folder))
        problems.fail("source.missing", f"`{folder}` is not a folder", "pass the folder that contains SKILL.md")
        return tuple(problems.found)
    read = _read_guarded(_Candidate(source), found)
    if read is None:
        return tuple(found)
    problems = Problems(str(source))
    lint(read.spec, read.modules, families, problems)
    return (*read.spec.problems, *problems.found)
