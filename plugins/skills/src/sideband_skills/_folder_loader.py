"""The skill loader for folders and installed packages. Each skill is loaded independently of the others."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
from attrs import define, evolve, field, frozen
from sideband.loading import LoadedSkills, PluginFolder, SkillProblem, SkillSources, SkillSpec

from ._config import Config
from ._copies import Copies
from ._folder_search import Candidate, FolderSearch, entries_of
from ._lints import lint
from ._manifest import Manifest, read_manifest
from ._manifest_search import find_manifest
from ._meter import LimitReached, Meter
from ._parser import PythonParser
from ._problems import Problems
from ._provides import provided
from ._requirements import read_requirements
from ._skill_cache import SkillCache
from ._skill_files import SkillFiles, list_files
from ._tool_discovery import Module, find_tools, read_python

if TYPE_CHECKING:
    from sideband.ops import OpFamily

_MAXIMUM_PLACES = 5
_PROJECT = "project"


@frozen
class _Read:
    """A skill, its parsed modules for the lints, and its files."""

    spec: SkillSpec
    modules: tuple[Module, ...]
    files: SkillFiles


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

        A source folder is a skill, or contains skills up to four levels deep. Of skills with the same name part, the
        first is loaded, in the order folders, packages, folders of plugins, folders of the project. Other skills with
        that name are reported, except for identical copies. The content of a skill never raises an exception.
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
    copies = Copies(meter)
    with PythonParser(meter) as parser, SkillCache.in_home(sources.home, meter.limits) as cache:
        try:
            for candidate in _candidates(sources, problems, meter):
                read = _read_guarded(candidate, problems, parser, copies, cache)
                if read is not None:
                    copies.add(candidate, read.spec, read.files)
        except LimitReached as limit:
            place = ", ".join(map(str, sources.folders[:_MAXIMUM_PLACES])) or "packages"
            problems.append(evolve(_exceeded(place, limit), reason=f"{limit.reason}; the remaining skills are skipped"))
        cache.save()
    return LoadedSkills(copies.skills, (*problems, *copies.problems()))


def _exceeded(source: str, limit: LimitReached) -> SkillProblem:
    return SkillProblem(
        source=source,
        code=f"skill.limit.{limit.limit}",
        reason=limit.reason,
        hint=f"if you trust it, raise `{limit.limit}` in `[plugins.skills]`",
        fatal=True,
    )


def _candidates(sources: SkillSources, found: list[SkillProblem], meter: Meter) -> Iterator[Candidate]:
    """Yield the skills in their order of precedence, each folder once, even if several sources contain it."""
    of_plugins = (one.path for one in sources.plugin_folders)
    resolved = [os.path.realpath(folder) for folder in (*sources.folders, *of_plugins, *sources.project_folders)]
    in_order = chain(
        _in_folders(sources.folders, resolved, found, meter),
        _in_packages(sources, found, meter),
        _of_plugins(sources.plugin_folders, resolved, found, meter),
        (evolve(one, origin=_PROJECT) for one in _in_folders(sources.project_folders, resolved, found, meter)),
        _in_copies(sources, found, meter),
    )
    seen: set[str] = set()
    for candidate in in_order:
        # hashing text is faster than hashing paths
        if (folder := str(candidate.folder)) not in seen:
            seen.add(folder)
            yield candidate


def _in_folders(
    folders: Iterable[Path], resolved: Sequence[str], found: list[SkillProblem], meter: Meter
) -> Iterator[Candidate]:
    for source in folders:
        problems = Problems(str(source), meter)
        try:
            yield from FolderSearch(source, problems, resolved).candidates()
        finally:
            found += problems.found


def _of_plugins(
    folders: Iterable[PluginFolder], resolved: Sequence[str], found: list[SkillProblem], meter: Meter
) -> Iterator[Candidate]:
    for one in folders:
        problems: list[SkillProblem] = []
        try:
            for candidate in _in_folders((one.path,), resolved, problems, meter):
                yield evolve(candidate, origin=one.origin)
        finally:
            found += [evolve(each, reason=f"{one.origin}: {each.reason}") for each in problems]


def _in_packages(sources: SkillSources, found: list[SkillProblem], meter: Meter) -> Iterator[Candidate]:
    for package in sources.packages:
        origin = f"package {package.distribution} {package.version}"
        problems = Problems(str(package.path), meter)
        folder = Path(os.path.realpath(package.path))
        candidate = _candidate(folder, problems)
        if candidate is None:
            problems.fail("manifest.missing", f"{origin} declares a skill but has no SKILL.md", "add it to the wheel")
        else:
            yield evolve(candidate, origin=origin, package=package.name, distribution=package.distribution)
        found += problems.found


def _in_copies(sources: SkillSources, found: list[SkillProblem], meter: Meter) -> Iterator[Candidate]:
    for copy in sources.copies:
        problems = Problems(str(copy.path), meter)
        candidate = _candidate(copy.path, problems)
        if candidate is None:
            problems.fail("manifest.missing", f"{copy.origin} returned a skill without SKILL.md", "report this there")
        else:
            yield evolve(candidate, origin=copy.origin, package=copy.name)
        found += problems.found


def _candidate(folder: Path, problems: Problems) -> Candidate | None:
    entries = entries_of(folder, problems)
    manifest = find_manifest(folder, entries, problems.meter)
    return None if manifest is None else Candidate(folder, manifest, entries)


def _read_guarded(
    candidate: Candidate, found: list[SkillProblem], parser: PythonParser, copies: Copies, cache: SkillCache | None
) -> _Read | None:
    """Return a skill; ``None`` with its problems, or if an earlier skill has its name.

    Without a cache, all Python files are parsed, for the lints.

    Raises:
        LimitReached: if all skills together exceed a limit.
    """
    problems = Problems(str(candidate.folder), parser.meter)
    try:
        with parser.meter.skill():
            read = _read(candidate, problems, parser, copies, cache)
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


def _read(
    candidate: Candidate, problems: Problems, parser: PythonParser, copies: Copies, cache: SkillCache | None
) -> _Read | None:
    problems.meter.add_entries(len(candidate.entries))
    listed = list_files(candidate.entries, problems)
    if not listed.complete:
        return None
    known = cache.find(candidate, listed, problems.found) if cache is not None else None
    if known is None:
        return _parse(candidate, listed, problems, parser, copies, cache=cache)
    spec, text = known
    if _is_hidden(candidate, spec, listed, problems, copies):
        return None
    parser.meter.add_text(text + sum(map(len, listed.paths)))
    return _Read(spec, (), listed)


def _is_hidden(
    candidate: Candidate, skill: SkillSpec | Manifest, listed: SkillFiles, problems: Problems, copies: Copies
) -> bool:
    """Return whether an earlier skill has the name of this one, whose problems are then of no interest."""
    if candidate.search is not None:
        candidate.search.note_files(candidate.folder, candidate.manifest, listed.paths)
    is_taken = copies.is_taken(candidate, skill, listed)
    if is_taken:
        problems.found.clear()
    return is_taken


def _parse(
    candidate: Candidate,
    listed: SkillFiles,
    problems: Problems,
    parser: PythonParser,
    copies: Copies,
    *,
    cache: SkillCache | None,
) -> _Read | None:
    folder, files = candidate.folder, listed.identities
    before, of_listing = parser.meter.text + sum(map(len, files)), len(problems.found)
    manifest = read_manifest(folder, candidate.manifest, files, problems, package=candidate.package)
    if manifest is None or _is_hidden(candidate, manifest, listed, problems, copies):
        return None
    parser.meter.add_text(len(manifest.instructions) + sum(map(len, files)))
    python = read_python(folder, files, problems, parser, everything=cache is None)
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
        resume=manifest.resume,
        provides=provided(manifest.provides, [tool.name for tool in tools.tools], candidate.manifest, problems),
        connections=manifest.connections,
        allowed_tools=manifest.allowed_tools,
        license=manifest.license,
        compatibility=manifest.compatibility,
        metadata=manifest.metadata,
        instructions=manifest.instructions,
        problems=tuple(problems.found),
    )
    if cache is not None:
        cache.add(candidate, listed, spec, listed=of_listing, text=parser.meter.text - before)
    return _Read(spec, python.modules, listed)


def _validate(folder: Path, families: tuple[OpFamily, ...], meter: Meter) -> tuple[SkillProblem, ...]:
    meter.start()
    found: list[SkillProblem] = []
    source = Path(os.path.realpath(folder))
    problems = Problems(str(source), meter)
    if not source.is_dir():
        problems = Problems(str(folder), meter)
        problems.fail("source.missing", f"`{folder}` is not a folder", "pass the folder that contains SKILL.md")
        return tuple(problems.found)
    candidate = _candidate(source, problems)
    if candidate is None:
        problems.fail("manifest.missing", "the folder has no SKILL.md", "add one, with `name` and `description`")
        return tuple(problems.found)
    with PythonParser(meter) as parser:
        read = _read_guarded(candidate, found, parser, Copies(meter), None)
    if read is None:
        return tuple(found)
    try:
        with meter.skill():
            lint(read.spec, read.modules, families, problems)
    except LimitReached as limit:
        problems.found.append(_exceeded(problems.source, limit))
    return (*read.spec.problems, *problems.found)
