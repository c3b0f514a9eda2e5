"""The catalog of a host's skills, which loader plugins find."""

from __future__ import annotations

import inspect
import os
from collections.abc import Container, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from attrs import evolve

from ..contexts import PluginContext
from ..loading import LoadedSkills, SkillLoader, SkillProblem, SkillSources, SkillSpec, ToolSpec
from ..plugins import PluginError, PluginHost
from ..plugins._objects import describe
from ..settings import SkillFolders
from ..workers import ToolNotFound

LOAD_SECONDS = 300.0
"""The timeout of one call of a loader."""
_NOT_FOUND = frozenset({"skill.manifest.missing", "skill.source.empty"})


class SkillCatalog:
    """Loads skills on first access and caches them until ``forget`` is called."""

    def __init__(self, plugins: PluginHost, folders: SkillFolders, home: Path | None = None) -> None:
        self._plugins, self._folders, self._home = plugins, folders, home
        self._loaded: LoadedSkills | None = None
        self._tools: dict[str, tuple[SkillSpec, ToolSpec]] = {}
        self._loading = anyio.Lock()
        self._is_again = False  # whether plugins were asked for their folders before
        self._is_current = True  # whether `forget` was not called since the last load began

    async def all(self) -> LoadedSkills:
        """Return all skills, sorted by name, and the problems of skills that could not be loaded."""
        if self._loaded is not None:
            return self._loaded
        async with self._loading:
            while self._loaded is None:
                self._is_current = True
                with self._plugins.hooks.editions.held():  # the loaders run, also while one is reloaded
                    loaded = await self._load()
                if self._is_current:
                    self._loaded, self._tools = loaded, _by_name(loaded)
            return self._loaded

    def forget(self) -> None:
        """Load the skills again on the next access. A load that is running begins again."""
        self._loaded, self._is_current = None, False

    async def tool(self, name: str) -> tuple[SkillSpec, ToolSpec]:
        """Return the tool with the name ``skill.tool`` or ``skill__tool``, and its skill.

        Raises:
            ToolNotFound: if no loaded skill has the tool; the message includes skills that could not be loaded.
        """
        loaded = self._loaded or await self.all()
        if (found := self._tools.get(name)) is not None:
            return found
        known = [tool.full_name for skill in loaded.skills for tool in skill.tools]
        raise ToolNotFound(name, known=known, problems=[problem.reason for problem in loaded.problems if problem.fatal])

    async def _load(self) -> LoadedSkills:
        sources = self._folders.sources(self._plugins.locate_skills(), self._home)
        discovered: tuple[SkillProblem, ...] = ()
        if self._plugins.hooks.has("resources_discover"):
            from ._plugin_folders import discover  # noqa: PLC0415  few plugins have folders of skills

            of_plugins, discovered = await discover(self._plugins.hooks, again=self._is_again)
            sources = evolve(sources, plugin_folders=of_plugins)
        self._is_again = True
        loaders: list[tuple[str, SkillLoader, PluginContext]] = []
        problems = [
            SkillProblem(f"package {one.distribution}", "plugin.failed", f"{one.label}: {one.reason}", fatal=True)
            for one in self._plugins.records
            if one.kind == "skill" and one.state.broken
        ]
        problems += discovered
        for name in self._plugins.names("loader", broken=True):
            try:
                plugin = await self._plugins.load("loader", name)
            except PluginError as error:
                problems.append(SkillProblem(f"loader {name}", error.code, error.message, error.hint, fatal=True))
                continue
            loaders += [(name, loader, plugin.context) for loader in plugin.contribution]
        self._plugins.check_strict()
        found = [await _result(*one, sources) for one in loaders]
        if any(one.files for one in found):
            found.append(await self._copies(loaders, found))
        for one in found:
            others = _folders(skill.source for other in found if other is not one for skill in other.skills)
            problems.extend(problem for problem in one.problems if not _is_of_another_format(problem, others))
        return _without_clashes([skill for one in found for skill in one.skills], problems)

    async def _copies(
        self, loaders: list[tuple[str, SkillLoader, PluginContext]], found: list[LoadedSkills]
    ) -> LoadedSkills:
        """Copy the files that loaders returned, and let the other loaders read the copies."""
        own = {skill.key: skill for one in found for skill in one.skills}
        skills: list[SkillSpec] = []
        problems: list[SkillProblem] = []
        known = {problem for one in found for problem in one.problems}
        readers = [one for one, result in zip(loaders, found, strict=True) if not result.files]
        for (name, _, _), result in zip(loaders, found, strict=True):
            if not result.files or self._home is None:
                continue
            from ._skill_copies import copy_skills  # noqa: PLC0415  most loaders return no files

            copies, failed = await anyio.to_thread.run_sync(copy_skills, name, result.files, self._home)
            problems += failed
            places = {str(one.path): one for one in copies}
            # Of copies of several loaders with one name, none is used, unless they are the same.
            taken, same = dict(own), {skill.source for skill in skills}
            sources = SkillSources(home=self._home, copies=tuple(copies))
            results = [await _result(*one, sources) for one in readers] if copies else []
            of_copies = [one for read in results for one in read.problems if one not in known]
            problems += of_copies
            recognized = {str(one.source) for read in results for one in read.skills}
            # Of skills with one name, a reader reports the first, and names the others.
            named = [f"{one.source}\n{one.reason}" for one in of_copies]
            for place in places.keys() - recognized:
                if not any(place in text for text in named):
                    problems.append(SkillProblem(place, "skill.copy", "no loader recognizes this skill", fatal=True))
            for read in results:
                for skill in read.skills:
                    copy = places.get(str(skill.source))
                    # A loader that does not read copies returns its own skills again.
                    if copy is None or copy.path in same:
                        continue
                    if (first := taken.setdefault(skill.key, skill)) is skill:
                        skills.append(evolve(skill, origin=copy.origin))
                        continue
                    reason = f"the skill `{skill.name}` of {copy.origin} is not used: {first.source} has its name"
                    problems.append(SkillProblem(str(copy.path), "skill.duplicate", reason, "rename one of them"))
        return LoadedSkills(tuple(skills), tuple(problems))


def _folders(skills: Iterable[Path]) -> set[Path]:
    """Return these folders and all that contain them."""
    resolved = {Path(os.path.realpath(one)) for one in skills}
    return resolved.union(*(one.parents for one in resolved))


def _is_of_another_format(problem: SkillProblem, others: Container[Path]) -> bool:
    """Return whether a loader reports that it found no skill where other loaders found one."""
    return not problem.fatal and problem.code in _NOT_FOUND and Path(os.path.realpath(problem.source)) in others


def _takes_context(load: Any) -> bool:
    """Return whether the function of a loader has a parameter ``ctx``."""
    try:
        return "ctx" in inspect.signature(load).parameters
    except (TypeError, ValueError):  # a callable without a signature
        return False


async def _loaded(loader: Any, ctx: PluginContext, sources: SkillSources) -> LoadedSkills:
    """Call a loader: a synchronous one in a thread, so that it cannot block the host.

    Raises:
        TimeoutError: if it does not return in time.
    """
    load = partial(loader.load, sources, ctx=ctx) if _takes_context(loader.load) else partial(loader.load, sources)
    with anyio.move_on_after(LOAD_SECONDS) as scope:
        is_async = inspect.iscoroutinefunction(loader.load)
        found = load() if is_async else await anyio.to_thread.run_sync(load, abandon_on_cancel=True)
        found = await found if inspect.isawaitable(found) else found
    if scope.cancelled_caught:
        raise TimeoutError(f"`load` did not return within {LOAD_SECONDS:g} s")
    loaded: LoadedSkills = found
    return loaded


async def _result(name: str, loader: SkillLoader, ctx: PluginContext, sources: SkillSources) -> LoadedSkills:
    """Return what a loader found, or a problem if it failed, so that the skills of other loaders can be used."""
    try:
        found = await _loaded(loader, ctx, sources)
        specs, problems = found.skills, found.problems
        hash((bool(found.files), *problems))  # both are used where an error would fail all loaders
        if all(isinstance(one, SkillSpec) for one in specs) and all(isinstance(one, SkillProblem) for one in problems):
            return found
        reason = "`load` returned objects that are not skills"
    except (Exception, SystemExit) as error:  # noqa: BLE001  a loader may raise anything
        reason = describe(error)
    hint = "update or uninstall its package; the skills of other loaders are not affected"
    problem = SkillProblem(f"loader {name}", "plugin.failed", f"the loader `{name}` failed: {reason}", hint, fatal=True)
    return LoadedSkills(problems=(problem,))


def _place(skill: SkillSpec) -> str:
    """Return where a skill is from. The path of a copy says nothing."""
    return f"{skill.origin} ({skill.source})" if skill.origin.startswith("loader ") else str(skill.source)


def _by_name(loaded: LoadedSkills) -> dict[str, tuple[SkillSpec, ToolSpec]]:
    """Return the tools by full name and by model name."""
    found: dict[str, tuple[SkillSpec, ToolSpec]] = {}
    for skill in loaded.skills:
        for tool in skill.tools:
            found.setdefault(tool.full_name, (skill, tool))
            found.setdefault(tool.model_name, (skill, tool))
    return found


def _without_clashes(skills: list[SkillSpec], problems: list[SkillProblem]) -> LoadedSkills:
    """Omit and report skills that have the same name but come from different loaders.

    A skill of the project gives way to the user's, so that a project cannot remove it.
    """
    by_key: dict[str, list[SkillSpec]] = {}
    for skill in skills:
        by_key.setdefault(skill.key, []).append(skill)
    by_key = {key: [one for one in same if not one.of_project] or same for key, same in by_key.items()}
    for key, rivals in by_key.items():
        if len(rivals) > 1:
            places = " and ".join(map(_place, rivals))
            reason = f"several skills have the name `{key}`: {places}"
            problems.append(SkillProblem(places, "skill.conflict", reason, "remove all but one", fatal=True))
    kept = [rivals[0] for _, rivals in sorted(by_key.items()) if len(rivals) == 1]
    return LoadedSkills(tuple(kept), tuple(problems))
