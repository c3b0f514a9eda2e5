"""Where skills come from: default folders, trust of the project, and what a project's skill may do."""

import json

import pytest
from sideband import CallRequest, Host
from sideband.approvals import Approval
from sideband.settings import load_settings, trust_project
from sideband.workers import GrantRequired
from sideband_cli import __version__

pytestmark = pytest.mark.anyio

SQL = "sql:path=test.db"
TOOL = """
from sideband.skill import sql, tool

@tool
async def where() -> str:
    await sql.execute("CREATE TABLE IF NOT EXISTS t (n)", db="test.db")
    return {!r}
"""
PLAIN = "from sideband.skill import tool\n\n@tool\nasync def where() -> str:\n    return {!r}\n"
LEAK = """
import os
from pathlib import Path
from sideband.skill import tool

@tool
async def look(folder: str) -> list:
    found = []
    for path in [folder, folder + "/notes", folder + "/notes/SKILL.md"]:
        try:
            found.append(os.listdir(path) if os.path.isdir(path) else Path(path).read_text())
        except OSError:
            pass
    return found
"""


def write_skill(parent, answer, *, name="notes", code=PLAIN, capabilities=""):
    folder = parent / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: Says {answer}.\nmetadata:\n  sideband.capabilities: '{capabilities}'\n---\n"
    )
    (folder / "tools.py").write_text(code.format(answer))
    return folder


@pytest.fixture
def user(tmp_path):
    folder = tmp_path / "user"
    folder.mkdir()
    return folder


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "sideband.toml").write_text("")
    return folder


@pytest.fixture
def open_host(tmp_path, user, project):
    """Return a function that makes a host from the settings of the user and the project, as the command line does."""

    def make(*, home=tmp_path / "home", trust=True, **options):
        home.mkdir(exist_ok=True)
        if trust:
            trust_project(home, project)
        return Host(home=home, settings=load_settings(home, user=user, project=project), **options)

    return make


async def loaded(host):
    """Return the descriptions of the skills that no package provides."""
    return {skill.key: skill.description for skill in (await host.skills()).skills if "package" not in skill.origin}


async def test_skills_of_the_user_and_the_trusted_project_are_found(open_host, user, project):
    for number, folder in enumerate((".sideband", ".claude", ".agents")):
        write_skill(user / folder / "skills", "user", name=f"mine-{number}")
        write_skill(project / folder / "skills", "project", name=f"theirs-{number}")
    async with open_host() as host:
        found = await host.skills()
    assert [(skill.key, skill.origin) for skill in found.skills] == [
        ("demo", f"package sideband-cli {__version__}"),
        *((f"mine_{number}", "folder") for number in range(3)),
        *((f"theirs_{number}", "project") for number in range(3)),
    ]
    assert found.problems == ()


async def test_skills_of_an_untrusted_project_are_not_loaded(open_host, project):
    write_skill(project / ".claude" / "skills", "project")
    write_skill(project / "more", "project", name="more")
    (project / "sideband.toml").write_text("[skills]\nfolders = ['more']\n")
    async with open_host(trust=False) as host:
        assert await loaded(host) == {}


async def test_skill_of_the_project_takes_the_name_of_no_other(open_host, user, project, tmp_path):
    theirs = [write_skill(project / place, "project") for place in (".claude/skills", "more")]
    (project / "sideband.toml").write_text("[skills]\nfolders = ['more']\n")
    write_skill(user / ".agents" / "skills", "personal")
    configured = write_skill(tmp_path / "configured", "configured")
    explicit = write_skill(tmp_path / "explicit", "explicit")
    (tmp_path / "home").mkdir()
    answers = []
    async with open_host() as host:
        answers.append(await host.call("notes.where"))
        (notice,) = (await host.skills()).problems
    (tmp_path / "home" / "sideband.toml").write_text(f"[skills]\nfolders = ['{configured}']\n")
    async with open_host() as host:
        answers.append(await host.call("notes.where"))
    async with open_host(skill_dirs=[explicit]) as host:
        answers.append(await host.call("notes.where"))
    assert answers == ["personal", "configured", "explicit"]
    assert all(str(folder) in notice.reason for folder in theirs)


async def test_grant_by_name_in_the_user_file_is_not_for_a_skill_of_the_project(open_host, project, tmp_path):
    write_skill(project / ".claude" / "skills", "project", code=TOOL, capabilities=SQL)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sideband.toml").write_text(f"[grants]\nnotes = ['{SQL}']\n")
    async with open_host() as host:
        with pytest.raises(GrantRequired):
            await host.call("notes.where")


async def test_grant_by_name_in_the_user_file_is_for_a_skill_of_the_user(open_host, user, tmp_path):
    write_skill(user / ".claude" / "skills", "user", code=TOOL, capabilities=SQL)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sideband.toml").write_text(f"[grants]\nnotes = ['{SQL}']\n")
    async with open_host() as host:
        assert await host.call("notes.where") == "user"


async def test_grant_by_name_in_the_trusted_project_file_is_for_its_skills(open_host, project):
    write_skill(project / ".claude" / "skills", "project", code=TOOL, capabilities=SQL)
    (project / "sideband.toml").write_text(f"[grants]\nnotes = ['{SQL}']\n")
    async with open_host() as host:
        assert await host.call("notes.where") == "project"


async def test_grant_by_a_variable_is_not_for_a_skill_of_the_project(tmp_path, user, project):
    write_skill(project / ".claude" / "skills", "project", code=TOOL, capabilities=SQL)
    home = tmp_path / "home"
    home.mkdir()
    trust_project(home, project)
    environment = {"SIDEBAND_GRANTS__NOTES": f"['{SQL}']"}
    async with Host(home=home, settings=load_settings(home, project=project, environment=environment)) as host:
        with pytest.raises(GrantRequired):
            await host.call("notes.where")


async def test_grant_that_the_user_gave_to_a_skill_is_not_for_another_one_with_its_name(open_host, user, project):
    mine = write_skill(user / ".claude" / "skills", "user", code=TOOL, capabilities=SQL)
    write_skill(project / ".claude" / "skills", "project", code=TOOL, capabilities=SQL)
    asked = []

    async def approver(request):
        asked.append(request.effect["source"])
        return Approval("allow", "always")

    async with open_host(approver=approver) as host:
        assert await host.call("notes.where") == "user"
    mine.rename(user / "elsewhere")
    async with open_host() as host:
        with pytest.raises(GrantRequired):
            await host.call("notes.where")
    assert asked == [str(mine)]


async def test_skill_that_takes_a_name_in_a_reload_does_not_give_its_rights_to_the_code_of_the_last(
    open_host, user, project, tmp_path
):
    write_skill(project / ".claude" / "skills", "project", code=TOOL, capabilities=SQL)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sideband.toml").write_text(f"[grants]\nnotes = ['{SQL}']\n")
    (user / ".claude" / "skills").mkdir(parents=True)

    async def approver(request):
        return Approval("allow", "always")

    async with open_host(approver=approver) as host:
        assert await host.call("notes.where") == "project"
        write_skill(user / ".claude" / "skills", "user", code=TOOL, capabilities=SQL)
        host.tools.forget_skills()
        assert await host.call("notes.where") == "user"


async def test_reload_runs_the_new_code_of_a_skill_and_asks_for_its_grant_again(open_host, user):
    folder = write_skill(user / ".claude" / "skills", "old", code=TOOL, capabilities=SQL)
    asked = []

    async def approver(request):
        asked.append(request.effect["capabilities"])
        return Approval("allow", "always")

    async with open_host(approver=approver) as host:
        assert await host.call("notes.where") == "old"
        (folder / "tools.py").write_text(TOOL.format("new"))
        assert await host.call("notes.where") == "old"
        host.tools.forget_skills()
        assert await host.call("notes.where") == "new"
    assert len(asked) == 2


async def test_identical_copy_in_the_project_shares_the_grant_of_the_same_content(open_host, user, project):
    mine = write_skill(user / ".claude" / "skills", "same", code=TOOL, capabilities=SQL)
    write_skill(project / ".claude" / "skills", "same", code=TOOL, capabilities=SQL)

    async def approver(request):
        return Approval("allow", "always")

    async with open_host(approver=approver) as host:
        await host.call("notes.where")
        assert (await host.skills()).problems == ()
    mine.rename(user / "elsewhere")
    async with open_host() as host:
        assert await host.call("notes.where") == "same"


async def test_snapshots_beside_the_skills_of_the_user_are_not_loaded(open_host, user):
    """By default, the state of a host is in ``~/.sideband``, so its snapshots and the user's skills share a folder."""
    home = user / ".sideband"
    write_skill(home / "skills", "user")
    old = write_skill(user / "old", "an old version", name="removed")
    async with open_host(home=home, skill_dirs=[old]) as host:
        assert await host.call("removed.where") == "an old version"
    assert any(len(folder.name) == 64 for folder in (home / "skills").iterdir())
    async with open_host(home=home) as host:
        assert await loaded(host) == {"notes": "Says user."}
        assert await host.call("notes.where") == "user"


async def test_worker_cannot_read_the_skills_of_the_user_beside_the_snapshots(open_host, user):
    home = user / ".sideband"
    write_skill(home / "skills", "a secret")
    look = write_skill(user / "other", "", name="look", code=LEAK)
    async with open_host(home=home, skill_dirs=[look]) as host:
        assert await host.call("look.look", folder=str(home / "skills")) == []


async def test_links_in_a_project_are_not_followed(open_host, user, project):
    outside = write_skill(user / "private", "private")
    folder = project / ".claude" / "skills"
    folder.mkdir(parents=True)
    (folder / "notes").symlink_to(outside)
    async with open_host() as host:
        assert await loaded(host) == {}


async def test_caller_can_still_give_rights_to_a_skill_of_the_project(open_host, project):
    write_skill(project / ".claude" / "skills", "project", code=TOOL, capabilities=SQL)
    async with open_host() as host:
        assert (await host.run(CallRequest("notes.where", {}, grants=(SQL,)))).output == "project"


def test_command_line_finds_default_folders_and_names_the_remedy_for_others(sideband, tmp_path, project):
    write_skill(tmp_path / ".claude" / "skills", "user", name="mine")
    write_skill(project / ".agents" / "skills", "project")
    (project / "sideband.toml").unlink()
    answer = sideband("skills", "list", "--json", folder=project)
    assert [skill["name"] for skill in json.loads(answer.stdout)["skills"]] == ["demo", "mine"]
    assert "ignored the skills in" in answer.stderr
    assert "the project is not trusted; add --trust to use them" in answer.stderr
    answer = sideband("skills", "list", "--json", "--trust", folder=project)
    skills = json.loads(answer.stdout)["skills"]
    assert [(skill["name"], skill["origin"]) for skill in skills[1:]] == [("mine", "folder"), ("notes", "project")]
    assert "ignored" not in answer.stderr
    assert "ignored" not in sideband("plugins", "list", folder=project).stderr


def test_relative_home_directory_does_not_make_a_project_the_user(sideband, project):
    """Without ``HOME`` and an entry in the list of users, the home directory is `~`, which a project may contain."""
    write_skill(project / ".claude" / "skills", "project")
    listed = sideband("skills", "list", "--json", folder=project, HOME=".")
    assert [skill["key"] for skill in json.loads(listed.stdout)["skills"]] == ["demo"]
    assert "the project is not trusted" in listed.stderr


def test_call_reports_which_of_several_skills_it_uses(sideband, tmp_path):
    first = write_skill(tmp_path / "first", "first")
    second = write_skill(tmp_path / "second", "second")
    options = ["--skill-dir", first, "--skill-dir", second]
    for name in ("notes.where", "notes__where"):
        answer = sideband("call", *options, name)
        assert answer.stdout == "first\n"
        assert f"using the first, `{first}` (folder), not `{second}` (folder)" in answer.stderr.replace("\n  ", " ")


def test_run_reports_skills_that_others_hide_and_sources_without_skills(sideband, turns, tmp_path):
    first = write_skill(tmp_path / "first", "first")
    second = write_skill(tmp_path / "second", "second")
    (tmp_path / "nothing").mkdir()
    options = [word for folder in (first, second, tmp_path / "nothing") for word in ("--skill-dir", folder)]
    answer = sideband("run", "hello", *turns({"text": "hello"}), *options)
    assert answer.stdout == "hello\n"
    assert "duplicate skill `notes`" in answer.stderr
    assert "contains no skill" in answer.stderr


def test_doctor_is_satisfied_with_skills_that_have_warnings(sideband, tmp_path):
    write_skill(tmp_path / ".claude" / "skills", "first")
    write_skill(tmp_path / ".agents" / "skills", "second")
    data = json.loads(sideband("doctor", "--json").stdout)
    assert not [problem for problem in data["problems"] if "notes" in problem]
    assert [notice for notice in data["notices"] if "duplicate skill `notes`" in notice]
