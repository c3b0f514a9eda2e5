"""Parameters of tools that the host fills in: models do not see them, and cannot set them."""

from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Annotated

import pytest
import sideband_sandbox.plugin
import sideband_skills.plugin
from attrs import evolve
from pydantic import BaseModel, ConfigDict
from sideband import Level, Plugin
from sideband.approvals import Approval
from sideband.calls import CallRequest
from sideband.hooks import Ask, Replace
from sideband.ledger import query
from sideband.ops import FromHost, OpContext, OpFamily, op
from sideband.tools import ToolContext, tool
from sideband_agent.sessions import ChannelEntry
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


class NoteParams(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    author: Annotated[str, FromHost("principal")]
    session: Annotated[str | None, FromHost("session")]
    channel: Annotated[str | None, FromHost("channel")]
    mode: Annotated[str, FromHost("approval_mode")]


@tool("note")
async def note(params: NoteParams, ctx: ToolContext) -> str:
    """Write a note."""
    return params.model_dump_json()


@op("diary.write")
async def write(params: NoteParams, ctx: OpContext) -> dict[str, str | None]:
    return params.model_dump()


EVE = {"author": "eve", "session": "another", "channel": "phone", "mode": "full"}
DIARY = Plugin("op", "diary", SimpleNamespace(sideband_ops=lambda: OpFamily(name="diary", ops=(write,))))


def expected(agent, text="hi"):
    return NoteParams(text=text, author="user", session=agent.session.id, channel=agent.session.channel, mode="manual")


def results(agent):
    return [one.content[0].text for one in agent.session.messages() if one.role == "tool"]


@pytest.mark.parametrize("sent", [{}, EVE])
async def test_tool_gets_the_values_of_the_host_whatever_the_model_sends(stage, sent):
    turns = [Turn(tool_calls=[("note", {"text": "hi", **sent})]), "done"]
    async with stage(turns, Plugin("tool", "note", note)) as agent:
        await agent.invoke("go")
        assert results(agent) == [expected(agent).model_dump_json()]
        (schema,) = agent.scripted.requests[0].tools
        assert list(schema.parameters["properties"]) == ["text"]
        (record,) = await query(agent.host.ledger.folder, op="tool.call")
        assert record.params["arguments"] == expected(agent).model_dump()


@pytest.mark.parametrize("more", [{}, EVE])
async def test_guard_sees_the_values_of_the_host_and_cannot_replace_them(stage, kit, more):
    seen = []

    def tool_call(event):
        seen.append(dict(event.arguments))
        return Replace({"text": "changed", **more})

    guard = Plugin("guard", "changer", kit.guard(tool_call=tool_call))
    turns = [Turn(tool_calls=[("note", {"text": "hi", **EVE})]), "done"]
    async with stage(turns, Plugin("tool", "note", note), guard) as agent:
        await agent.invoke("go")
        assert seen == [expected(agent).model_dump()]
        assert results(agent) == [expected(agent, "changed").model_dump_json()]


async def test_tool_uses_the_values_of_its_context_whichever_agent_calls_it():
    session = SimpleNamespace(id="s1", channel="cli")
    arguments = {"text": "hi", **EVE}
    ctx = SimpleNamespace(principal="ada", session=session, approval_mode="semi")
    assert await note.run(note.validate(arguments), ctx) == (
        NoteParams(text="hi", author="ada", session="s1", channel="cli", mode="semi").model_dump_json()
    )


async def test_op_that_a_tool_dispatches_gets_the_session_and_channel_of_the_agent(stage):
    class Text(BaseModel):
        text: str

    @tool("diary_tool")
    async def dispatching(params: Text, ctx: ToolContext) -> str:
        """Write into the diary."""
        return NoteParams(**await ctx.dispatch("diary.write", {"text": params.text, **EVE})).model_dump_json()

    turns = [Turn(tool_calls=[("diary_tool", {"text": "hi"})]), "done"]
    async with stage(turns, Plugin("tool", "diary_tool", dispatching), DIARY) as agent:
        await agent.invoke("go")
        assert results(agent) == [expected(agent).model_dump_json()]


class Line(BaseModel):
    text: str


@op("book.write")
async def write_line(params: Line, ctx: OpContext) -> str:
    return params.text


BOOK = Plugin("op", "book", SimpleNamespace(sideband_ops=lambda: OpFamily(name="book", ops=(write_line,))))


@pytest.fixture
def parked(stage, kit):
    """Open an agent whose call of `note` waits for an approval, and can then ``go_on``."""

    @asynccontextmanager
    async def open_stage(*, is_own=False):
        @tool("note", resume="replay")
        async def waiting(params: NoteParams, ctx: ToolContext) -> str:
            """Write a note."""
            await ctx.dispatch("book.write", {"text": params.text})
            return params.model_dump_json()

        async def go_on():
            for one in await agent.host.approvals.list():
                await agent.host.approvals.answer(one.request.id, Approval("allow"))
            return await agent.resume()

        guard = Plugin(
            "guard", "asking", kit.guard(op_call=lambda event: Ask("?") if event.op == "book.write" else None)
        )
        turns = [Turn(tool_calls=[("note", {"text": "hi"})]), "done"]
        plugins, own = ([], [waiting]) if is_own else ([Plugin("tool", "note", waiting)], [])
        async with stage(turns, *plugins, BOOK, guard, own_tools=own) as agent:
            assert (await agent.invoke("go")).status == "parked"
            agent.go_on = go_on
            yield agent

    return open_stage


async def test_call_that_waited_continues_with_the_channel_of_now(parked):
    async with parked() as agent:
        await agent.session.append(ChannelEntry(channel="phone"))
        assert (await agent.go_on()).status == "completed"
        (text,) = results(agent)
        assert NoteParams.model_validate_json(text) == expected(agent)
        assert expected(agent).channel == "phone"


@pytest.mark.parametrize("change", [{"level": Level.RESTRICTED}, {"description": "Write and send a note."}])
async def test_call_that_waited_does_not_continue_with_a_tool_that_has_changed(parked, change):
    async with parked(is_own=True) as agent:
        note = agent.tools.get("note")
        agent.withdraw("note")
        agent.offer(evolve(note, **change))
        assert (await agent.go_on()).status == "completed"
        (text,) = results(agent)
        assert "its tool has changed" in text


async def test_call_that_waited_does_not_continue_on_behalf_of_another_principal(parked):
    async with parked() as agent:
        agent.host.tools.context(agent.tools.get("note")).principal = "eve"
        assert (await agent.go_on()).status == "completed"
        (text,) = results(agent)
        assert "it was made on behalf of another principal" in text


SKILL = '''
from sideband.skill import dispatch, tool

@tool
async def write(text: str) -> dict:
    """Write into the diary."""
    return await dispatch("diary.write", {"text": text, "author": "eve", "session": "another", "channel": "phone"})
'''


async def test_op_that_a_skill_dispatches_gets_the_session_and_channel_of_the_agent(stage, make_skill, tmp_path):
    make_skill("writer", SKILL)
    own = [Plugin("loader", "skills", sideband_skills.plugin), Plugin("sandbox", "sandbox", sideband_sandbox.plugin)]
    turns = [Turn(tool_calls=[("writer__write", {"text": "hi"})]), "done"]
    async with stage(turns, *own, DIARY, skill_dirs=[tmp_path / "skills"]) as agent:
        await agent.invoke("go")
        (text,) = results(agent)
        assert NoteParams.model_validate_json(text) == expected(agent)


OWN = '''
from typing import Annotated
from sideband.skill import FromHost, tool

@tool
async def own(
    text: str,
    author: Annotated[str, FromHost("principal")],
    session: Annotated[str | None, FromHost("session")],
    channel: Annotated[str | None, FromHost("channel")],
    mode: Annotated[str, FromHost("approval_mode")],
) -> dict:
    """Return the values."""
    return {"text": text, "author": author, "session": session, "channel": channel, "mode": mode}
'''


@pytest.mark.parametrize("sent", [{}, EVE])
async def test_tool_of_a_skill_gets_the_values_of_the_host_whatever_is_sent(stage, make_skill, tmp_path, sent):
    make_skill("owner", OWN)
    own = [Plugin("loader", "skills", sideband_skills.plugin), Plugin("sandbox", "sandbox", sideband_sandbox.plugin)]
    turns = [Turn(tool_calls=[("owner__own", {"text": "hi", **sent})]), "done"]
    async with stage(turns, *own, skill_dirs=[tmp_path / "skills"]) as agent:
        await agent.invoke("go")
        (text,) = results(agent)
        assert NoteParams.model_validate_json(text) == expected(agent)
        (schema,) = agent.scripted.requests[0].tools
        assert list(schema.parameters["properties"]) == ["text"]
        request = CallRequest("owner.own", {"text": "hi", **sent}, principal="ada")
        assert (await agent.host.run(request)).output == {
            "text": "hi",
            "author": "ada",
            "session": None,
            "channel": None,
            "mode": "manual",
        }
