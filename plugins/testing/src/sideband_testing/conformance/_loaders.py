"""The conformance class of skill loaders."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest
from sideband import Host
from sideband.loading import LoadedSkills, SkillLoader, SkillSources

from ._base import Conformance, tree_of
from ._failing import fail
from ._schemas import check_schema
from ._stepping import Steps

_TRAP = "SIDEBAND_CONFORMANCE_IMPORTED"


_MODULE = f"""
import sys

sys.{_TRAP} = True

from sideband.skill import tool


@tool
async def hello(name: str) -> str:
    '''Greet.'''
    return name
"""


class LoaderConformance(Conformance):
    """The tests of a loader: a plugin in the group ``sideband.v1.loader``.

    The method ``prepare`` writes skills into the folder; without it, the folder has a skill in the format of Agent
    Skills with a tool, and a broken one.

    Attributes:
        finds: the names of the skills that it finds in the folder.
        fails: how many skills of the folder it reports as unusable.

    Example:
        >>> class TestSkills(LoaderConformance):
        ...     plugin = "loader.skills"
    """

    kind = "loader"
    finds: ClassVar[Sequence[str]] = ("greeting",)
    fails: ClassVar[int] = 1

    def prepare(self, folder: Path) -> None:
        """Write a good and a broken skill, whose modules would set a variable if they were imported."""
        manifest = b"---\nname: greeting\ndescription: Greets people.\n---\nSay hello.\n"
        for name, content in (("greeting", manifest), ("broken", b"\x00\xff\xfe")):
            (folder / name).mkdir()
            (folder / name / "SKILL.md").write_bytes(content)
            (folder / name / "tools.py").write_text(_MODULE)

    def test_it_finds_skills_and_reports_broken_ones(self) -> None:
        """Check that it finds each valid skill, and reports each invalid one as a problem, never as an exception."""
        found = self._load()
        names = sorted(one.name for one in found.skills) + sorted(one.name for one in found.files)
        if names != sorted(self.finds):
            self._wrong(f"it finds {', '.join(self.finds)}", f"it finds {', '.join(names) or 'none'}", "correct it")
        fatal = [one for one in found.problems if one.fatal]
        if len(fatal) != self.fails:
            shown = "; ".join(f"{one.source}: {one.reason}" for one in fatal) or "none"
            self._wrong(
                f"it reports {self.fails} unusable skill with `SkillProblem(…, fatal=True)`",
                shown,
                "catch what reading one skill may raise, and go on with the next",
            )
        for one in found.problems:
            if not one.code or not one.reason:
                self._wrong("each problem has a code and a reason", repr(one), "say what is wrong, and where")

    def test_it_runs_nothing_of_a_skill(self) -> None:
        """Check that loading imports no module of a skill, in the host that loads it."""
        sys.__dict__.pop(_TRAP, None)
        modules = set(sys.modules)
        self._load()
        imported = [
            name
            for name in set(sys.modules) - modules
            if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(self.world))
        ]
        if imported or sys.__dict__.pop(_TRAP, False):
            self._wrong(
                "it runs nothing of a skill: a skill runs in a worker only",
                f"it imported {', '.join(imported) or 'a module'}",
                "read signatures with `ast`",
            )

    def test_it_changes_nothing_in_a_source(self) -> None:
        """Check that loading writes nothing into the folders that it reads."""
        self._load()
        before = tree_of(self.world)
        self._load(fresh=False)
        if tree_of(self.world) != before or any(self.world.rglob("__pycache__")):
            self._wrong("it writes nothing into sources", "a source changed", "write derived data to `sources.home`")

    def test_loading_twice_has_the_same_result(self) -> None:
        """Check that while nothing changes, it returns the same skills in the same order."""
        first, second = self._load(), self._load(fresh=False)
        if [one.name for one in first.skills] != [one.name for one in second.skills]:
            self._wrong(
                "it returns the same skills in the same order",
                f"{[one.name for one in first.skills]} became {[one.name for one in second.skills]}",
                "sort what it finds",
            )

    def test_schemas_are_valid(self) -> None:
        """Check that each tool of a skill has a JSON Schema, and refuses wrong arguments with ``ValueError``."""
        for skill in self._load().skills:
            for tool in skill.tools:
                check_schema(self.label, f"`parameters` of `{tool.full_name}`", tool.parameters)
                if tool.returns is not None:
                    check_schema(self.label, f"`returns` of `{tool.full_name}`", tool.returns)
                try:
                    tool.validate({"sideband_unknown": object()})
                except ValueError:
                    continue
                except Exception as error:  # noqa: BLE001  that is what is checked
                    self._wrong(
                        f"`{tool.full_name}` refuses wrong arguments with `ValueError`",
                        f"{type(error).__name__}: {error}",
                        "convert the errors of validators",
                    )
                else:
                    self._wrong(
                        f"`{tool.full_name}` refuses unknown arguments", "it accepts them", "validate the arguments"
                    )

    def test_cancellation_leaves_nothing_behind(self) -> None:
        """Check that a loader that is cancelled wherever it waits leaves no task, thread, process or file."""

        async def check() -> None:
            async with self.open_host() as host:
                for loader in await self._loaders(host):
                    if not inspect.iscoroutinefunction(loader.load):
                        continue
                    steps = Steps()
                    watched = steps.watch(loader.load)
                    await self.cancel_everywhere(
                        f"the loader `{loader.name}`",
                        steps,
                        lambda: watched(self._sources(host), **self._context(loader, host)),  # noqa: B023
                    )

        self.reset_world()
        self.run(check)

    async def exercise(self, host: Host) -> None:
        """Load all skills of the folder."""
        self.reset_world()
        for loader in await self._loaders(host):
            await self._call(loader, host)

    def _load(self, *, fresh: bool = True) -> LoadedSkills:
        async def load() -> LoadedSkills:
            async with self.open_host() as host:
                found = [await self._call(loader, host) for loader in await self._loaders(host)]
            return LoadedSkills(
                tuple(one for each in found for one in each.skills),
                tuple(one for each in found for one in each.problems),
                tuple(one for each in found for one in each.files),
            )

        if fresh:
            self.reset_world()
        result: LoadedSkills = self.run(load)
        return result

    async def _call(self, loader: SkillLoader, host: Host) -> LoadedSkills:
        try:
            if inspect.iscoroutinefunction(loader.load):
                found = await loader.load(self._sources(host), **self._context(loader, host))
            else:
                found = await anyio.to_thread.run_sync(loader.load, self._sources(host))
        except pytest.fail.Exception:
            raise
        except Exception as error:  # noqa: BLE001  that is what is checked
            self._wrong(
                "it never raises: an invalid skill is a problem of its own",
                f"{type(error).__name__}: {error}",
                "catch what reading one skill may raise, and return a `SkillProblem`",
            )
        if not isinstance(found, LoadedSkills):
            self._wrong("`load` returns `LoadedSkills`", f"it returns {type(found).__name__}", "return `LoadedSkills`")
        result: LoadedSkills = found
        return result

    async def _loaders(self, host: Host) -> Sequence[SkillLoader]:
        loaded = await host.plugins.load("loader", self.subject.name)
        self._plugin_context = loaded.context
        found: Sequence[SkillLoader] = loaded.contribution
        return found

    def _context(self, loader: SkillLoader, host: Host) -> dict[str, Any]:
        del host
        return {"ctx": self._plugin_context} if "ctx" in inspect.signature(loader.load).parameters else {}

    def _sources(self, host: Host) -> SkillSources:
        return SkillSources(folders=(self.world,), home=host.home)

    def _wrong(self, expected: str, happened: str, remedy: str) -> Any:
        fail(self.label, expected=expected, happened=happened, remedy=remedy)
