"""The skill loader for folders and installed packages. Each skill is loaded independently of the others."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
from attrs import define, evolve, field, frozen
from sideband.loading import LoadedSkills, SkillProblem, SkillSources, SkillSpec

from ._config import Config
from ._lints import lint
from ._manifest import read_manifest
from ._manifest_search import find_manifest
from ._meter import LimitReached, Meter
from ._parser import PythonParser
from ._problems import Problems
from ._requirements import read_requirements
from ._skill_files import list_files
from ._tool_discovery import Module, find_tools, read_python

if TYPE_CHECKING:
    from sideband.ops import OpFamily

_MAXIMUM_DEPTH = 4
_NO_SKILLS = frozenset({"__pycache__", "node_modules"})
_MAXIMUM_PLACES = 5


@frozen
class _Candidate:
    """A skill's folder and its manifest."""

    folder: Path
    manifest: str
    origin: str = "folder"
    package: str = ""
    distribution: str = ""


@frozen
class _Read:
    """A skill, and its parsed modules for the lints."""

    spec: SkillSpec
    modules: tuple[Module, ...]


@define
class FolderLoader:
    """Loads skills in the open Agent Skills format, in AgentOS's format or with a ``skill.yaml``, without running code.

    Args:
        limits: what loading may use. A skill that exceeds a limit fails to load, and the others load.

    Example:
        >>> loaded = await FolderLoader().load(SkillSources(folders=(Path("skills"),)))
        >>> [tool.full_name for skill in loaded.skills for tool in skill.tools]
        ['github_stars.stars']
    """

    limits: Config = field(factory=Config)
    name: str = field(default="skills", init=False)

    async def load(self, sources: SkillSources) -> LoadedSkills:
        """Load all skills from these sources.

        A source folder is a skill, or contains skills up to four levels deep. If two skills have the same name part,
        both are skipped, with a problem that names both. The content of a skill never raises an exception.
        """
        return await anyio.to_thread.run_sync(_load, sources, Meter(self.limits), abandon_on_cancel=True)

    async def validate(self, folder: Path, *, families: Iterable[OpFamily] = ()) -> tuple[SkillProblem, ...]:
        """Return all problems of a skill: those of ``load``, and code that would fail at run time.

        Args:
            folder: the skill's folder.
            families: the installed op families, used to check op names, arguments and capabilities; empty for no check.
        """
        meter = Meter(self.limits)
        return await anyio.to_thread.run_sync(_validate, folder, tuple(families), meter, abandon_on_cancel=True)


def _load(sources: SkillSources, meter: Meter) -> LoadedSkills:
    meter.start()
    problems: list[SkillProblem] = []
    by_key: dict[str, list[SkillSpec]] = {}
    with PythonParser(meter) as parser:
        try:
            for candidate in _unique(_candidates(sources, problems, meter)):
                read = _read_guarded(candidate, problems, parser)
                if read is not None:
                    by_key.setdefault(read.spec.key, []).append(read.spec)
        except LimitReached as limit:
            place = ", ".join(map(str, sources.folders[:_MAXIMUM_PLACES])) or "packages"
            problems.append(evolve(_exceeded(place, limit), reason=f"{limit.reason}; the remaining skills are skipped"))
    for key, same in by_key.items():
        if len(same) > 1:
            problems.append(_duplicate(key, same))
    skills = tuple(same[0] for _, same in sorted(by_key.items()) if len(same) == 1)
    return LoadedSkills(skills, tuple(problems))


def _exceeded(source: str, limit: LimitReached) -> SkillProblem:
    return SkillProblem(
        source=source,
        code=f"skill.limit.{limit.limit}",
        reason=limit.reason,
        hint=f"if you trust it, raise `{limit.limit}` in `[plugins.skills]`",
        fatal=True,
    )


def _duplicate(key: str, same: list[SkillSpec]) -> SkillProblem:
    places = " and ".join(f"`{spec.source}` ({spec.origin})" for spec in same[:_MAXIMUM_PLACES])
    more = f" and {len(same) - _MAXIMUM_PLACES:,} more folders" if len(same) > _MAXIMUM_PLACES else ""
    return SkillProblem(
        source=str(same[0].source),
        code="skill.duplicate",
        reason=f"duplicate skill `{key}` in {places}{more}; none of them is loaded",
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


def _candidates(sources: SkillSources, found: list[SkillProblem], meter: Meter) -> Iterator[_Candidate]:
    for source in sources.folders:
        problems = Problems(str(source), meter)
        try:
            yield from _skills_of(source, problems)
        finally:
            found += problems.found
    for package in sources.packages:
        origin = f"package {package.distribution} {package.version}"
        problems = Problems(str(package.path), meter)
        folder = Path(os.path.realpath(package.path))
        manifest = _manifest_of(folder, problems)
        if manifest is None:
            problems.fail("manifest.missing", f"{origin} declares a skill but has no SKILL.md", "add it to the wheel")
        else:
            yield _Candidate(folder, manifest, origin, package.name, package.distribution)
        found += problems.found


def _skills_of(source: Path, problems: Problems) -> Iterator[_Candidate]:
    folder = Path(os.path.realpath(source))
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        problems.fail("source.missing", f"`{source}` {what}", "pass the folder that contains SKILL.md")
        return
    entries = _entries(folder, problems)
    manifest = find_manifest(folder, entries, problems.meter)
    if manifest is not None:
        yield _Candidate(folder, manifest)
        return
    if any(entry.name.endswith((".py", ".md")) and entry.is_file() for entry in entries):
        problems.warn("manifest.missing", f"`{source}` is not a skill: it has no SKILL.md", "add one")
    for child in entries:
        if child.is_symlink():
            if child.is_dir():
                problems.warn(
                    "source.link",
                    f"`{child.name}` is a symbolic link to a folder, which is not followed",
                    "add that folder as another source",
                )
        elif _may_have_skills(child):
            below = list(_skills_in(Path(child.path), problems, depth=1))
            yield from below
            if not below:
                problems.warn("manifest.missing", f"`{child.name}` is not a skill: it has no SKILL.md", "add one")


def _skills_in(folder: Path, problems: Problems, *, depth: int) -> Iterator[_Candidate]:
    entries = _entries(folder, problems)
    manifest = find_manifest(folder, entries, problems.meter)
    if manifest is not None:
        yield _Candidate(folder, manifest)
    elif depth < _MAXIMUM_DEPTH:
        for child in entries:
            if _may_have_skills(child):
                yield from _skills_in(Path(child.path), problems, depth=depth + 1)


def _may_have_skills(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".") and entry.name not in _NO_SKILLS


def _entries(folder: Path, problems: Problems) -> list[os.DirEntry[str]]:
    try:
        return problems.meter.entries(folder)
    except OSError as error:
        problems.warn("files.unreadable", f"cannot list `{folder}`: {error.strerror}")
    except LimitReached as limit:
        # a folder with too many entries is skipped; what limits all skills ends the search
        problems.meter.check_total()
        problems.fail(f"limit.{limit.limit}", f"`{folder}`: {limit.reason}")
    return []


def _manifest_of(folder: Path, problems: Problems) -> str | None:
    return find_manifest(folder, _entries(folder, problems), problems.meter)


def _read_guarded(
    candidate: _Candidate, found: list[SkillProblem], parser: PythonParser, *, everything: bool = False
) -> _Read | None:
    """Return a skill, or ``None`` with its problems.

    Raises:
        LimitReached: if all skills together exceed a limit.
    """
    problems = Problems(str(candidate.folder), parser.meter)
    try:
        with parser.meter.skill():
            read = _read(candidate, problems, parser, everything=everything)
    except LimitReached as limit:
        # what limits all skills is reported once, by the caller
        parser.meter.check_total()
        problems.found.append(_exceeded(problems.source, limit))
        read = None
    except Exception as error:  # noqa: BLE001 - a failure must not stop the other skills from loading
        problems.fail(
            "unreadable", f"loading failed with {type(error).__name__}: {error}", "report this, with the skill"
        )
        read = None
    if read is None:
        found += problems.found
    return read


def _read(candidate: _Candidate, problems: Problems, parser: PythonParser, *, everything: bool) -> _Read | None:
    folder = candidate.folder
    listed = list_files(folder, problems)
    if not listed.complete:
        return None
    files = listed.identities
    manifest = read_manifest(folder, candidate.manifest, files, problems, package=candidate.package)
    if manifest is None:
        return None
    parser.meter.add_text(len(manifest.instructions) + sum(map(len, files)))
    python = read_python(folder, files, problems, parser, everything=everything)
    requirements = read_requirements(python.blocks, candidate.distribution, problems)
    if problems.is_fatal:
        return None
    tools = find_tools(manifest.key, python.modules, problems, parser)
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
    return _Read(spec, python.modules)


def _validate(folder: Path, families: tuple[OpFamily, ...], meter: Meter) -> tuple[SkillProblem, ...]:
    meter.start()
    found: list[SkillProblem] = []
    source = Path(os.path.realpath(folder))
    problems = Problems(str(source), meter)
    if not source.is_dir():
        problems = Problems(str(folder), meter)
        problems.fail("source.missing", f"`{folder}` is not a folder", "pass the folder that contains SKILL.md")
        return tuple(problems.found)
    manifest = _manifest_of(source, problems)
    if manifest is None:
        problems.fail("manifest.missing", "the folder has no SKILL.md", "add one, with `name` and `description`")
        return tuple(problems.found)
    with PythonParser(meter) as parser:
        read = _read_guarded(_Candidate(source, manifest), found, parser, everything=True)
    if read is None:
        return tuple(found)
    try:
        with meter.skill():
            lint(read.spec, read.modules, families, problems)
    except LimitReached as limit:
        problems.found.append(_exceeded(problems.source, limit))
    return (*read.spec.problems, *problems.found)
