"""The skill catalog: lookup by name, and reports about skills that are missing or in conflict."""

from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from sideband import SidebandError
from sideband.calls._catalog import SkillCatalog
from sideband.loading import LoadedSkills, SkillProblem, SkillSpec, ToolSpec
from sideband.plugins import PluginError
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
    def __init__(self, *skills, problems=()):
        self.found = LoadedSkills(skills, tuple(problems))
        self.loads = 0

    async def load(self, sources):
        self.loads += 1
        self.sources = sources
        return self.found


class Plugins:
    def __init__(self, **loaders):
        self.loaders = loaders
        self.records = ()

    def locate_skills(self):
        return ()

    def names(self, kind, *, broken=False):
        return tuple(self.loaders)

    async def load(self, kind, name):
        if isinstance(self.loaders[name], Exception):
            raise self.loaders[name]
        return SimpleNamespace(contribution=(self.loaders[name],), context=None)


async def test_tool_is_found_by_both_names_and_loaded_once():
    loader = Loader(skill("my_notes"))
    catalog = SkillCatalog(Plugins(one=loader), SkillFolders())
    for name in ("my_notes.run", "my_notes__run"):
        found, tool = await catalog.tool(name)
        assert (found.key, tool.name) == ("my_notes", "run")
    assert loader.loads == 1


async def test_unknown_tool_suggests_the_closest_and_reports_broken_skills():
    broken = SkillProblem("elsewhere", "skill.x", "its SKILL.md is damaged", fatal=True)
    warning = SkillProblem("elsewhere", "skill.y", "only a warning")
    catalog = SkillCatalog(Plugins(one=Loader(skill("notes"), problems=[broken, warning])), SkillFolders())
    with pytest.raises(ToolNotFound, match=r"did you mean `notes\.run`") as caught:
        await catalog.tool("notse.run")
    assert "its SKILL.md is damaged" in caught.value.message
    assert "only a warning" not in caught.value.message


async def test_skills_with_the_same_name_are_both_omitted():
    catalog = SkillCatalog(
        Plugins(one=Loader(skill("notes", "here")), two=Loader(skill("notes", "there"))), SkillFolders()
    )
    loaded = await catalog.all()
    assert loaded.skills == ()
    assert [(one.code, one.fatal, one.reason) for one in loaded.problems] == [
        ("skill.conflict", True, "several skills have the name `notes`: here and there")
    ]


@pytest.mark.parametrize("code", ["skill.manifest.missing", "skill.source.empty"])
async def test_missing_manifest_is_reported_unless_another_loader_finds_a_skill_there(code):
    mixed, other = (SkillProblem(folder, code, "no SKILL.md") for folder in ("mixed", "mix"))
    damaged = SkillProblem("mixed", code, "its SKILL.md is a folder", fatal=True)
    first = Loader(skill("a", "other/a"), problems=[mixed, other, damaged])
    loaded = await SkillCatalog(Plugins(one=first, two=Loader(skill("b", "mixed/b"))), SkillFolders()).all()
    assert set(loaded.problems) == {other, damaged}
    first = Loader(skill("a", "mixed/a"), problems=[mixed, other, damaged])
    loaded = await SkillCatalog(Plugins(one=first, two=Loader(skill("b", "other/b"))), SkillFolders()).all()
    assert set(loaded.problems) == {mixed, other, damaged}


async def test_skill_of_the_project_gives_way_to_one_of_another_loader():
    mine, theirs = skill("notes", "here"), skill("notes", "project", "project")
    for loaders in ({"one": Loader(mine), "two": Loader(theirs)}, {"one": Loader(theirs), "two": Loader(mine)}):
        loaded = await SkillCatalog(Plugins(**loaders), SkillFolders()).all()
        assert [one.source for one in loaded.skills] == [Path("here")]


async def test_skills_that_change_while_they_are_loaded_are_loaded_again():
    class Changing(Loader):
        async def load(self, sources):
            found = await super().load(sources)
            if self.loads == 1:
                self.found = LoadedSkills((skill("new"),))
                catalog.forget()
            return found

    catalog = SkillCatalog(Plugins(one=Changing(skill("old"))), SkillFolders())
    assert [one.key for one in (await catalog.all()).skills] == ["new"]
    assert (await catalog.tool("new.run"))[0].key == "new"


async def test_unusable_loader_is_reported_and_others_load():
    class Broken(PluginError, SidebandError):
        def __init__(self):
            SidebandError.__init__(self, "it does not import", hint="repair it", code="plugin.import")

    catalog = SkillCatalog(Plugins(broken=Broken(), good=Loader(skill("notes"))), SkillFolders())
    loaded = await catalog.all()
    assert [one.key for one in loaded.skills] == ["notes"]
    assert loaded.problems == (
        SkillProblem("loader broken", "plugin.import", "it does not import", "repair it", fatal=True),
    )


async def test_loaders_get_the_home_folder_of_the_host(tmp_path):
    loader = Loader(skill("notes"))
    await SkillCatalog(Plugins(one=loader), SkillFolders(), tmp_path).all()
    assert loader.sources.home == tmp_path


def test_twice_as_many_skills_and_folders_without_one_cost_twice_as_much(count_calls):
    def load(number):
        empty = [SkillProblem(f"/empty/{one}", "skill.manifest.missing", "no SKILL.md") for one in range(number)]
        loaders = {"one": Loader(problems=empty), "two": Loader(*(skill(f"s{one}") for one in range(number)))}
        return lambda: anyio.run(SkillCatalog(Plugins(**loaders), SkillFolders()).all)

    load(1)()
    assert count_calls(load(400)) < 2.2 * count_calls(load(200))
