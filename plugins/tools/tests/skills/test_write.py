"""Skills that a model writes and deletes."""

import pytest
from sideband.loading import SkillSources
from sideband_scripted import Scripted
from sideband_skills import FolderLoader

pytestmark = pytest.mark.anyio
MANIFEST = "---\nname: notes\ndescription: Keeps notes.\n---\n\nKeep notes.\n"


async def loaded(skills):
    return [one.name for one in (await FolderLoader().load(SkillSources((skills,)))).skills]


async def test_new_skill_can_be_loaded(call, skills):
    result = await call("skill_write", name="notes", content=MANIFEST)
    assert not result.is_error, result.text
    assert (skills / "notes/SKILL.md").read_text() == MANIFEST
    assert await loaded(skills) == ["notes"]


async def test_problems_that_do_not_prevent_loading_are_reported(call):
    result = await call("skill_write", name="notes", content=MANIFEST.replace("---\n\n", "odd: x\n---\n\n"))
    assert "- " in result.text
    assert "odd" in result.text


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        ("scripts/a.py", "x = 1\n", "SKILL.md"),
        ("SKILL.md", "# Notes\n", "frontmatter"),
        ("SKILL.md", MANIFEST.replace("name: notes", "name: other"), "differs from its folder"),
    ],
)
async def test_skill_that_could_not_be_loaded_is_not_written(call, skills, file, content, problem):
    result = await call("skill_write", name="notes", file=file, content=content)
    assert (result.is_error, result.metadata["code"]) == (True, "tools.skill_invalid")
    assert problem in result.text
    assert not [*skills.iterdir()]


async def test_change_that_would_break_a_skill_leaves_it_as_it_was(call, skills, make_skill):
    folder = make_skill({})
    before = (folder / "SKILL.md").read_text()
    broken = "# /// script\n# dependencies = ['x @ https://example.com/x']\n# ///\n"
    for arguments in (
        {"content": ""},
        {"file": "scripts/run.py", "content": broken},
    ):
        result = await call("skill_write", name="report", **arguments)
        assert result.is_error
        assert "nothing was written" in result.text
    assert (folder / "SKILL.md").read_text() == before
    assert not (folder / "scripts").exists()


async def test_file_of_a_skill_is_edited(call, make_skill):
    folder = make_skill({"scripts/run.py": "print(1)\n"})
    edits = [{"old": "1", "new": "2"}]
    result = await call("skill_write", name="report", file="scripts/run.py", edits=edits)
    assert not result.is_error, result.text
    assert (folder / "scripts/run.py").read_text() == "print(2)\n"


async def test_changed_skill_loses_its_rights(call, make_skill, approver):
    make_skill({"scripts/run.py": "print(1)\n"})
    asked = []
    for _ in range(2):
        await call("skill_run", name="report", script="scripts/run.py")
        asked.append({one.effect["holder"] for one in approver.requests if one.subject == "skill:report"})
        await call("skill_write", name="report", file="scripts/run.py", content="print(2)\n")
    assert len(asked[1]) == 2


@pytest.mark.parametrize("file", ["../x.md", "/etc/x", ".git/config", "a/../../b", "a/"])
async def test_only_files_within_the_skill_are_written(call, make_skill, tmp_path, file):
    make_skill({})
    for name in ("skill_write", "skill_delete"):
        content = {"content": "x"} if name == "skill_write" else {}
        result = await call(name, name="report", file=file, **content)
        assert (result.is_error, result.metadata["code"]) == (True, "tools.skill_file_name")
    assert sorted(one.name for one in (tmp_path / "skills").rglob("*")) == ["SKILL.md", "report"]


async def test_link_out_of_the_folder_is_not_followed(call, make_skill, tmp_path):
    folder = make_skill({})
    (tmp_path / "outside").mkdir()
    (folder / "scripts").symlink_to(tmp_path / "outside")
    result = await call("skill_write", name="report", file="scripts/a.txt", content="x")
    assert result.is_error
    assert not [*(tmp_path / "outside").iterdir()]


async def test_deleted_skill_is_gone_with_all_its_files(call, skills, make_skill):
    make_skill({"scripts/a/b.py": "1\n", ".hidden": "x"})
    make_skill({}, name="other")
    result = await call("skill_delete", name="report")
    assert not result.is_error, result.text
    assert result.text == "deleted the skill report (3 files)"
    assert [one.name for one in skills.iterdir()] == ["other"]


async def test_single_file_is_deleted_and_never_the_manifest(call, make_skill):
    folder = make_skill({"scripts/a.py": "1\n"})
    assert not (await call("skill_delete", name="report", file="scripts/a.py")).is_error
    assert (await call("skill_delete", name="report", file="SKILL.md")).is_error
    assert sorted(one.name for one in folder.rglob("*")) == ["SKILL.md", "scripts"]


async def test_unknown_skill_cannot_be_deleted(call, skills):
    result = await call("skill_delete", name="report")
    assert result.is_error
    assert "there is no such skill" in result.text


async def test_deleted_skill_comes_back_with_undo(opened, make_skill, skills):
    folder = make_skill({"scripts/a.py": "1\n"})
    async with opened(("skill_delete", {"name": "report"})) as agent:
        ran = await agent.invoke("go")
        assert not folder.exists()
        effect = next(one.metadata["effect"] for one in ran.messages if one.role == "tool")
        await agent.host.undo(await agent.host.plan_undo(effect))
    assert (folder / "scripts/a.py").read_text() == "1\n"
    assert await loaded(skills) == ["report"]


async def test_new_skill_is_read_and_its_script_runs_in_the_same_session(opened, approver):
    written = [("SKILL.md", MANIFEST), ("scripts/say.sh", "echo hello\n")]
    calls = [("skill_write", {"name": "notes", "file": file, "content": content}) for file, content in written]
    calls += [("skill", {"name": "notes"}), ("skill_run", {"name": "notes", "script": "scripts/say.sh"})]
    async with opened(*calls) as agent:
        ran = await agent.invoke("go")
    results = [one for one in ran.messages if one.role == "tool"]
    assert not [one.text for one in results if one.is_error]
    assert results[0].text.endswith("[the skill notes can be used now: read it with `skill`]")
    assert "Keep notes." in results[2].text
    assert "hello" in results[3].text
    assert [one.subject for one in approver.requests].count("skill:notes") == 1


async def test_function_of_a_new_skill_is_offered_from_the_next_turn_on(opened):
    function = "from sideband.skill import tool\n\n\n@tool\nasync def count() -> int:\n    return 41 + 1\n"
    written = [("SKILL.md", MANIFEST), ("tools.py", function)]
    calls = [("skill_write", {"name": "notes", "file": file, "content": content}) for file, content in written]
    script = Scripted([])
    async with opened(*calls, script=script) as agent:
        ran = await agent.invoke("go")
    assert [one.text for one in ran.messages if one.role == "tool"][1].endswith("and call its tools: notes__count]")
    offered = ["notes__count" in [tool.name for tool in one.tools] for one in script.requests]
    assert offered == [False, False, True]


async def test_deleted_skill_can_no_longer_be_used_in_the_same_session(opened, make_skill):
    make_skill({})
    calls = [(name, {"name": "report"}) for name in ("skill", "skill_delete", "skill")]
    async with opened(*calls) as agent:
        ran = await agent.invoke("go")
    before, _, after = [one for one in ran.messages if one.role == "tool"]
    assert not before.is_error
    assert after.metadata["code"] == "tools.skill"


async def test_model_learns_that_a_skill_is_in_no_folder_that_is_searched(call, settings, tmp_path):
    settings["plugins"]["tools"]["skills"] = str(tmp_path / "elsewhere")
    result = await call("skill_write", name="notes", content=MANIFEST)
    assert not result.is_error
    assert "the skill notes cannot be used: sideband does not search" in result.text
