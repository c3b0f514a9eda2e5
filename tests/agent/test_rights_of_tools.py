"""Tools that use rights of their own: what a model reaches with them, and the one question about them."""

import pytest
import sideband_files.plugin
from pydantic import BaseModel
from sideband import Plugin
from sideband.approvals import Approval
from sideband.ledger import query
from sideband.tools import SkillUses, tool
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio
FILES = Plugin("op", "files", sideband_files.plugin)


class PathParams(BaseModel):
    path: str


@tool("look", read_only=True)
async def look(params: PathParams, ctx) -> str:
    """Read a file of the working directory."""
    uses = [f"files:path={ctx.folder}/*"]
    return (await ctx.dispatch("files.read", {"path": str(ctx.folder / params.path)}, uses=uses))["content"]


LOOK = Plugin("tool", "look", look)


def looks(*paths):
    return [Turn(tool_calls=[("look", {"path": path})]) for path in paths] + ["done"]


def results(agent):
    return [one.text for one in agent.session.messages() if one.role == "tool"]


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("inside")
    (tmp_path / "b.txt").write_text("outside")
    return folder


def answering(*answers):
    """An approver that gives these answers, and keeps the requests."""

    async def approve(request):
        approve.requests.append(request)
        return answers[len(approve.requests) - 1]

    approve.requests = []
    return approve


async def test_rights_are_asked_for_once_and_shown_exactly(stage, work):
    approve = answering(Approval("allow", "session"))
    async with stage(looks("a.txt", "a.txt"), FILES, LOOK, approver=approve, folder=work) as agent:
        await agent.invoke("look twice")
        assert results(agent) == ["inside", "inside"]
        (request,) = approve.requests
        assert request.question == "Grant these capabilities to the plugin `look`, for every caller of its tools?"
        assert request.effect["capabilities"] == [f"files:hidden=no,mode=read,path={work}/*,place=system"]


async def test_rights_that_were_given_for_always_are_remembered(stage, work, tmp_path):
    approve = answering(Approval("allow", "always"))
    for _ in range(2):
        async with stage(looks("a.txt"), FILES, LOOK, approver=approve, folder=work, home=tmp_path / "home") as agent:
            await agent.invoke("look")
            assert results(agent) == ["inside"]
    assert len(approve.requests) == 1


async def test_tool_reaches_nothing_else_and_no_question_is_asked_about_it(stage, work):
    approve = answering()
    settings = {"grants": {"plugin:look": ["files:place=*,mode=read|write,hidden=*"]}}
    async with stage(looks("../b.txt"), FILES, LOOK, approver=approve, folder=work, settings=settings) as agent:
        await agent.invoke("look outside")
        assert "is not granted" in results(agent)[0]
        assert approve.requests == []


async def test_configured_rights_are_not_asked_for(stage, work):
    settings = {"grants": {"plugin:look": [f"files:path={work}/*"]}}
    async with stage(looks("a.txt"), FILES, LOOK, folder=work, settings=settings) as agent:
        await agent.invoke("look")
        assert results(agent) == ["inside"]
        (record,) = await query(agent.host.home / "ledger", op="files.read")
        assert record.granted_by == ("plugin:look policy",)


async def test_refused_rights_are_an_error_with_the_reason(stage, work):
    approve = answering(Approval("deny", reason="not this folder"))
    async with stage(looks("a.txt", "a.txt"), FILES, LOOK, approver=approve, folder=work) as agent:
        await agent.invoke("look twice")
        assert all("not this folder" in one for one in results(agent))
        assert len(approve.requests) == 1


async def test_uses_must_be_a_list(stage, work):
    @tool("wrong", read_only=True)
    async def wrong(params: PathParams, ctx) -> None:
        """Pass a text."""
        await ctx.dispatch("files.read", {"path": params.path}, uses="files")

    turns = [Turn(tool_calls=[("wrong", {"path": "a.txt"})]), "done"]
    async with stage(turns, FILES, Plugin("tool", "wrong", wrong), folder=work) as agent:
        await agent.invoke("look")
        assert "expected a list of capabilities" in results(agent)[0]


def reading_for(digest, *more, of_project=False):
    """A tool that reads a file with the rights of a version of the skill `reports`."""

    @tool("look", read_only=True)
    async def look(params: PathParams, ctx) -> str:
        """Read a file of the working directory."""
        capabilities = (f"files:path={ctx.folder}/*", *more)
        uses = SkillUses("Reports", "reports", digest, "/skills/reports", capabilities, of_project)
        return (await ctx.dispatch("files.read", {"path": str(ctx.folder / params.path)}, uses=uses))["content"]

    return Plugin("tool", "look", look)


async def test_rights_of_a_skill_are_asked_for_in_its_name_and_kept_for_its_version(stage, work, tmp_path):
    approve = answering(*[Approval("allow", "always")] * 2)
    for digest in ("a" * 64, "a" * 64, "b" * 64):
        looking, home = reading_for(digest), tmp_path / "home"
        async with stage(looks("a.txt"), FILES, looking, approver=approve, folder=work, home=home) as agent:
            await agent.invoke("look")
            assert results(agent) == ["inside"]
    assert [one.effect["holder"] for one in approve.requests] == ["a" * 64, "b" * 64]
    assert approve.requests[0].question == "Grant these capabilities to the skill `Reports`?"


async def test_rights_of_the_plugin_are_not_those_of_a_skill(stage, work):
    approve = answering(Approval("deny", reason="not this skill"))
    settings = {"grants": {"plugin:look": [f"files:path={work}/*"]}}
    looking = reading_for("a" * 64)
    async with stage(looks("a.txt"), FILES, looking, approver=approve, folder=work, settings=settings) as agent:
        await agent.invoke("look")
        assert "rights of the skill `Reports`" in results(agent)[0]
        assert "not this skill" in results(agent)[0]


async def test_all_rights_of_a_skill_are_asked_for_before_its_first_effect(stage, work):
    approve = answering(Approval("deny", reason="not all of it"))
    settings = {"grants": {"reports": [f"files:path={work}/*"]}}
    looking = reading_for("a" * 64, "files:path=/etc/*")
    async with stage(looks("a.txt"), FILES, looking, approver=approve, folder=work, settings=settings) as agent:
        await agent.invoke("look")
        assert "not all of it" in results(agent)[0]
    assert approve.requests[0].effect["capabilities"] == ["files:hidden=no,mode=read,path=/etc/*,place=system"]


@pytest.mark.parametrize(("of_project", "asked"), [(False, 0), (True, 1)])
async def test_rights_by_name_in_the_user_s_file_are_not_for_a_skill_of_a_project(
    stage, work, tmp_path, of_project, asked
):
    approve, home = answering(Approval("deny")), tmp_path / "home"
    home.mkdir()
    (home / "sideband.toml").write_text(f'[grants]\nreports = ["files:path={work}/*"]\n')
    looking = reading_for("a" * 64, of_project=of_project)
    async with stage(looks("a.txt"), FILES, looking, approver=approve, folder=work, home=home) as agent:
        await agent.invoke("look")
        assert len(approve.requests) == asked
