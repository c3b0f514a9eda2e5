"""Loaders with one fault each: wrappers of the loader `skills`."""

import importlib.util
import os
from contextlib import suppress
from types import SimpleNamespace

import anyio
import attrs
from sideband import Plugin
from sideband.loading import LoadedSkills
from sideband_testing import LoaderConformance
from sideband_testing.conformance._subject import resolve

SKILLS = resolve("loader.skills").value


class Good:
    name = "faulty"

    def __init__(self, config):
        self.loader = SKILLS.sideband_loaders(config)[0]

    async def load(self, sources, ctx):
        found = self.loader.load(sources)
        return await found if hasattr(found, "__await__") else found


def loader(cls):
    def sideband_loaders(config):
        return [cls(config)]

    value = SimpleNamespace(sideband_loaders=sideband_loaders, Config=SKILLS.Config, backends=("asyncio",))
    return Plugin("loader", "faulty", value)


class Base(LoaderConformance):
    fault = ""
    max_steps = 6


class TestGood(Base):
    plugin = loader(Good)


class HidesProblems(Good):
    async def load(self, sources, ctx):
        return attrs.evolve(await super().load(sources, ctx), problems=())


class TestHidesProblems(Base):
    fault = "test_it_finds_skills_and_reports_broken_ones"
    plugin = loader(HidesProblems)


class Imports(Good):
    async def load(self, sources, ctx):
        spec = importlib.util.spec_from_file_location("faulty_tools", sources.folders[0] / "greeting" / "tools.py")
        with suppress(Exception):  # the SDK does not exist here
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
        return await super().load(sources, ctx)


class TestImportsModules(Base):
    fault = "test_it_runs_nothing_of_a_skill"
    plugin = loader(Imports)
    overrides = {"test_it_changes_nothing_in_a_source": "an import writes byte code"}


class Writes(Good):
    async def load(self, sources, ctx):
        (sources.folders[0] / "index").write_text(str(id(sources)))
        return await super().load(sources, ctx)


class TestWritesIntoASource(Base):
    fault = "test_it_changes_nothing_in_a_source"
    plugin = loader(Writes)


class Forgets(Good):
    seen = set()

    async def load(self, sources, ctx):
        found = await super().load(sources, ctx)
        if sources.folders in Forgets.seen:
            return LoadedSkills((), found.problems)
        Forgets.seen.add(sources.folders)
        return found


class TestFindsThemOnce(Base):
    fault = "test_loading_twice_has_the_same_result"
    plugin = loader(Forgets)


class AcceptsAnything(Good):
    async def load(self, sources, ctx):
        found = await super().load(sources, ctx)
        skills = [
            attrs.evolve(skill, tools=tuple(attrs.evolve(tool, validate=dict) for tool in skill.tools))
            for skill in found.skills
        ]
        return attrs.evolve(found, skills=tuple(skills))


class TestAcceptsAnyArguments(Base):
    fault = "test_schemas_are_valid"
    plugin = loader(AcceptsAnything)


class LeaksWhenCancelled(Good):
    async def load(self, sources, ctx):
        descriptor = os.open(os.devnull, os.O_RDONLY)
        await anyio.lowlevel.checkpoint()
        os.close(descriptor)
        return await super().load(sources, ctx)


class TestCancelledLeavesADescriptor(Base):
    fault = "test_cancellation_leaves_nothing_behind"
    plugin = loader(LeaksWhenCancelled)
