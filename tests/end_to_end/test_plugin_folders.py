"""Folders of skills that plugins return from the hook `resources_discover`."""

from pathlib import Path

import pytest
from sideband import Host, Plugin
from sideband.hooks import Resources, ResourcesDiscover, hookimpl
from sideband.settings import load_settings, trust_project

pytestmark = pytest.mark.anyio


def write_skill(parent, description, *, name="notes"):
    folder = parent / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n")
    return folder


class Folders:
    """A plugin that returns these folders, and keeps the events."""

    def __init__(self, *folders):
        self.folders, self.events = folders, []

    @hookimpl
    def resources_discover(self, event: ResourcesDiscover) -> Resources:
        self.events.append(event)
        return Resources(skill_folders=self.folders)


class Failing:
    @hookimpl
    def resources_discover(self, event: ResourcesDiscover) -> Resources:
        raise RuntimeError("no folders today")


class Mute:
    def __str__(self):
        raise RuntimeError("no text today")


class Text:
    @hookimpl
    def resources_discover(self, event: ResourcesDiscover) -> Resources:
        return Resources(skill_folders="/srv")


class Generating:
    @hookimpl
    def resources_discover(self, event: ResourcesDiscover) -> Resources:
        return Resources(skill_folders=(Path(f"/srv/{1 // number}") for number in (1, 0)))


@pytest.fixture
def open_host(tmp_path):
    def make(*plugins, **options):
        named = [Plugin("hook", f"books-{number}", one) for number, one in enumerate(plugins)]
        return Host(home=tmp_path / "home", plugins=named, **options)

    return make


async def loaded(host):
    found = (await host.skills()).skills
    return {skill.key: (skill.description, skill.origin) for skill in found if "package" not in skill.origin}


@pytest.mark.parametrize("kind", [str, Path])
async def test_skills_in_folders_of_plugins_have_the_plugin_as_their_origin(open_host, tmp_path, kind):
    write_skill(tmp_path / "more", "Of a plugin.")
    async with open_host(Folders(kind(tmp_path / "more"))) as host:
        assert await loaded(host) == {"notes": ("Of a plugin.", "plugin books-0")}


async def test_skill_of_the_user_keeps_its_name(open_host, tmp_path):
    theirs = write_skill(tmp_path / "more", "Of a plugin.")
    write_skill(tmp_path / "mine", "Of the user.")
    async with open_host(Folders(theirs), skill_dirs=[tmp_path / "mine"]) as host:
        assert await loaded(host) == {"notes": ("Of the user.", "folder")}
        (notice,) = (await host.skills()).problems
    assert str(theirs) in notice.reason


async def test_skill_of_a_package_keeps_its_name(open_host, tmp_path):
    write_skill(tmp_path / "more", "Of a plugin.", name="demo")
    async with open_host(Folders(tmp_path / "more")) as host:
        assert await loaded(host) == {}


async def test_skill_of_a_project_does_not_take_the_name_of_one_of_a_plugin(tmp_path):
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    write_skill(project / ".sideband" / "skills", "Of the project.")
    write_skill(tmp_path / "more", "Of a plugin.")
    trust_project(home, project)
    settings = load_settings(home, user=None, project=project)
    books = Plugin("hook", "books", Folders(tmp_path / "more"))
    async with Host(home=home, settings=settings, plugins=[books]) as host:
        assert await loaded(host) == {"notes": ("Of a plugin.", "plugin books")}


async def test_bad_folder_is_a_problem_of_the_plugin_and_the_others_are_used(open_host, tmp_path):
    write_skill(tmp_path / "more", "Of a plugin.")
    (tmp_path / "file").write_text("")
    bad = ["more", tmp_path / "missing", tmp_path / "file", "/a\0b", Mute()]
    async with open_host(Folders(*bad, tmp_path / "more")) as host:
        assert set(await loaded(host)) == {"notes"}
        problems = (await host.skills()).problems
    assert [one.source for one in problems] == ["plugin books-0"] * len(bad)
    reasons = [one.reason for one in problems]
    assert "`books-0`" in problems[0].hint
    assert reasons[0] == "plugin books-0: the folder of skills 'more' is not an absolute path"
    assert all("is not an existing folder" in one for one in reasons[1:4])
    assert "is a Mute, not a path" in reasons[4]


async def test_at_most_100_folders_of_a_plugin_are_searched(open_host, tmp_path):
    folders = [write_skill(tmp_path / "more", "Of a plugin.", name=f"notes-{number}") for number in range(101)]
    async with open_host(Folders(*folders)) as host:
        assert len(await loaded(host)) == 100
        (problem,) = (await host.skills()).problems
    assert problem.reason == "plugin books-0: it returned more than 100 folders of skills"


async def test_problem_with_the_content_of_a_folder_names_the_plugin(open_host, tmp_path):
    (tmp_path / "empty").mkdir()
    async with open_host(Folders(tmp_path / "empty")) as host:
        (problem,) = (await host.skills()).problems
    assert problem.source == str(tmp_path / "empty")
    assert problem.reason.startswith("plugin books-0: ")


@pytest.mark.parametrize("broken", [Failing, Generating, Text])
async def test_plugin_that_fails_is_skipped(open_host, tmp_path, broken):
    write_skill(tmp_path / "more", "Of a plugin.")
    async with open_host(broken(), Folders(tmp_path / "more")) as host:
        assert await loaded(host) == {"notes": ("Of a plugin.", "plugin books-1")}
        assert (await host.skills()).problems == ()


async def test_plugins_are_asked_again_when_skills_are_searched_again(open_host, tmp_path):
    books = Folders()
    async with open_host(books) as host:
        await loaded(host)
        await loaded(host)
        books.folders = (write_skill(tmp_path / "more", "Of a plugin."),)
        host.tools.forget_skills()
        assert set(await loaded(host)) == {"notes"}
    assert [(one.folder, one.reason) for one in books.events] == [(Path.cwd(), "startup"), (Path.cwd(), "reload")]


async def test_link_into_a_folder_of_a_plugin_needs_no_notice(open_host, tmp_path):
    theirs, mine = write_skill(tmp_path / "more", "Of a plugin."), tmp_path / "mine"
    write_skill(mine, "Of the user.", name="letters")
    (mine / "linked").symlink_to(theirs)
    async with open_host(Folders(tmp_path / "more"), skill_dirs=[mine]) as host:
        assert set(await loaded(host)) == {"letters", "notes"}
        assert (await host.skills()).problems == ()
