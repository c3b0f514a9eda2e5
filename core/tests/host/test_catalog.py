"""The skill catalog: lookup by name, and reports about skills that are missing or in conflict."""

from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from sideband import Plugin
from sideband.calls._catalog import SkillCatalog
from sideband.loading import LoadedSkills, SkillProblem, SkillSpec, ToolSpec
from sideband.plugins import PluginHost
from sideband.settings import SkillFolders
from sideband.workers import ToolNotFound

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


def skill(key, place="here", origin="folder"):
    tool = ToolSpec(key, "run", "tools.py", "", {}, validate=dict)
    name = key.replace("_", "-")
    return SkillSpec(name=name, key=key, description="", source=Path(place), tools=(tool,), origin=origin)


class Loader:
    name = "a loader"

    def __init__(self, *skills, problems=()):
        self.found = LoadedSkills(skills, tuple(problems))
        self.loads = 0

    async def load(self, sources):
        self.loads += 1
        self.sources = sources
        return self.found


def plugin(name, *loaders):
    return Plugin("loader", name, SimpleNamespace(sideband_loaders=lambda: loaders))


@asynccontextmanager
async def catalog_at(home, **loaders):
    """Open the catalog of a plugin host with these loaders."""
    inline = [plugin(name, loader) for name, loader in loaders.items()]
    async with PluginHost(home=home, inline=inline, autoload=False) as plugins:
        yield SkillCatalog(plugins, SkillFolders(), home)


@pytest.fixture
def opened(tmp_path):
    return partial(catalog_at, tmp_path)


async def test_tool_is_found_by_both_names_and_loaded_once(opened):
    loader = Loader(skill("my_notes"))
    async with opened(one=loader) as catalog:
        for name in ("my_notes.run", "my_notes__run"):
            found, tool = await catalog.tool(name)
            assert (found.key, tool.name) == ("my_notes", "run")
    assert loader.loads == 1


async def test_unknown_tool_suggests_the_closest_and_reports_broken_skills(opened):
    broken = SkillProblem("elsewhere", "skill.x", "its SKILL.md is damaged", fatal=True)
    warning = SkillProblem("elsewhere", "skill.y", "only a warning")
    async with opened(one=Loader(skill("notes"), problems=[broken, warning])) as catalog:
        with pytest.raises(ToolNotFound, match=r"did you mean `notes\.run`") as caught:
            await catalog.tool("notse.run")
    assert "its SKILL.md is damaged" in caught.value.message
    assert "only a warning" not in caught.value.message


async def test_skills_with_the_same_name_are_both_omitted(opened):
    async with opened(one=Loader(skill("notes", "here")), two=Loader(skill("notes", "there"))) as catalog:
        loaded = await catalog.all()
    assert loaded.skills == ()
    assert [(one.code, one.fatal, one.reason) for one in loaded.problems] == [
        ("skill.conflict", True, "several skills have the name `notes`: here and there")
    ]


@pytest.mark.parametrize("code", ["skill.manifest.missing", "skill.source.empty"])
async def test_missing_manifest_is_reported_unless_another_loader_finds_a_skill_there(opened, code):
    mixed, other = (SkillProblem(folder, code, "no SKILL.md") for folder in ("mixed", "mix"))
    damaged = SkillProblem("mixed", code, "its SKILL.md is a folder", fatal=True)
    first = Loader(skill("a", "other/a"), problems=[mixed, other, damaged])
    async with opened(one=first, two=Loader(skill("b", "mixed/b"))) as catalog:
        assert set((await catalog.all()).problems) == {other, damaged}
    first = Loader(skill("a", "mixed/a"), problems=[mixed, other, damaged])
    async with opened(one=first, two=Loader(skill("b", "other/b"))) as catalog:
        assert set((await catalog.all()).problems) == {mixed, other, damaged}


async def test_skill_of_the_project_gives_way_to_one_of_another_loader(opened):
    mine, theirs = skill("notes", "here"), skill("notes", "project", "project")
    for loaders in ({"one": Loader(mine), "two": Loader(theirs)}, {"one": Loader(theirs), "two": Loader(mine)}):
        async with opened(**loaders) as catalog:
            assert [one.source for one in (await catalog.all()).skills] == [Path("here")]


async def test_skills_that_change_while_they_are_loaded_are_loaded_again(opened):
    class Changing(Loader):
        async def load(self, sources):
            found = await super().load(sources)
            if self.loads == 1:
                self.found = LoadedSkills((skill("new"),))
                catalog.forget()
            return found

    async with opened(one=Changing(skill("old"))) as catalog:
        assert [one.key for one in (await catalog.all()).skills] == ["new"]
        assert (await catalog.tool("new.run"))[0].key == "new"


async def test_unusable_loader_is_reported_and_others_load(opened):
    async with opened(broken=None, good=Loader(skill("notes"))) as catalog:
        loaded = await catalog.all()
    assert [one.key for one in loaded.skills] == ["notes"]
    (problem,) = loaded.problems
    assert (problem.source, problem.fatal) == ("loader broken", True)
    assert "None" in problem.reason


async def test_loaders_get_the_home_folder_of_the_host(opened, tmp_path):
    loader = Loader(skill("notes"))
    async with opened(one=loader) as catalog:
        await catalog.all()
    assert loader.sources.home == tmp_path


def test_twice_as_many_skills_and_folders_without_one_cost_twice_as_much(count_calls, tmp_path):
    def load(number):
        empty = [SkillProblem(f"/empty/{one}", "skill.manifest.missing", "no SKILL.md") for one in range(number)]
        loaders = {"one": Loader(problems=empty), "two": Loader(*(skill(f"s{one}") for one in range(number)))}

        async def run():
            async with catalog_at(tmp_path, **loaders) as catalog:
                await catalog.all()

        return lambda: anyio.run(run)

    load(1)()
    assert count_calls(load(400)) < 2.2 * count_calls(load(200))
