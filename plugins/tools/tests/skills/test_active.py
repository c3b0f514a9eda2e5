"""The instructions of skills: what they pre-approve, and how many of them a model sees."""

import pytest
from sideband.active_skills import pre_approvals
from sideband.approvals import Approval
from sideband.grants import given_grants, revoke_grant
from sideband_scripted import Scripted, Turn

pytestmark = pytest.mark.anyio
ALLOWS = "allowed-tools: Read Edit Bash(git:*) NotebookEdit\n"


async def results(opened, *names, **options):
    async with opened(*(("skill", {"name": one}) for one in names), **options) as agent:
        ran = await agent.invoke("go")
        assert ran.status == "completed", ran.error
        return [one for one in ran.messages if one.role == "tool"]


async def test_tools_are_pre_approved_after_the_user_has_granted_it(opened, make_skill, approver):
    make_skill({}, more=ALLOWS)
    messages = await results(opened, "report", "report")
    assert messages[-1].metadata["allowed_tools"] == ["edit", "command(git *)"]
    assert {one.skill for one in pre_approvals(messages, "edit")} == {"report"}
    (request,) = approver.requests
    assert request.question == "Grant these capabilities to the skill `report`?"
    assert any("allow=command(git%20*)" in one or "allow=edit" in one for one in request.effect["capabilities"])


@pytest.mark.parametrize("answer", [Approval("deny"), None])
async def test_nothing_is_pre_approved_without_the_user(opened, make_skill, approver, answer):
    make_skill({}, more=ALLOWS)
    approver.answer = answer
    (message,) = await results(opened, "report", approves=answer is not None)
    assert "Run scripts/run.py" in message.text
    assert not [*pre_approvals([message], "edit")]


async def test_changed_skill_is_asked_about_again_before_it_pre_approves(opened, make_skill, approver):
    approver.answer = Approval("allow", "always")
    make_skill({}, more=ALLOWS)
    await results(opened, "report")
    make_skill({}, more=ALLOWS.replace("Edit", "Write"))
    approver.answer = Approval("deny")
    (message,) = await results(opened, "report")
    assert len(approver.requests) == 2
    assert message.metadata["allowed_tools"] == []


async def test_skill_that_only_reads_is_not_asked_about(opened, make_skill, approver):
    make_skill({}, more="allowed-tools: Read Grep Glob WebFetch\n")
    await results(opened, "report")
    assert approver.requests == []


async def test_model_sees_the_instructions_of_active_skills_only(opened, make_skill):
    for name in ("first", "second", "third"):
        make_skill({}, name=name, text=f"{name} word " * 3_000)
    script = Scripted([])
    await results(opened, "first", "second", "third", script=script)
    shown = [one.text for one in script.requests[-1].messages if one.role == "tool"]
    assert "first word" not in shown[0]
    assert "call `skill` to read them again" in shown[0]
    assert "second word" in shown[1]
    assert "third word" in shown[2]


async def test_guard_does_not_ask_about_what_an_active_skill_pre_approves(opened, make_skill, approver, work):
    make_skill({}, more=ALLOWS)
    (work / "a.txt").write_text("one")
    edit = {"path": "a.txt", "edits": [{"old": "one", "new": "two"}]}
    calls = [("read", {"path": "a.txt"}), ("skill", {"name": "report"}), ("edit", edit)]
    calls.append(("write", {"path": "b.txt", "content": "x"}))
    async with opened(*calls, guards=True) as agent:
        await agent.invoke("go")
    assert (work / "a.txt").read_text() == "two"
    assert [one.effect["path"] for one in approver.requests if one.kind == "effect"] == [str(work / "b.txt")]


async def test_guard_does_not_ask_about_a_command_that_an_active_skill_pre_approves(opened, make_skill, approver):
    make_skill({}, more="allowed-tools: Bash(echo:*)\n")
    approver.answer = Approval("allow", "always")
    commands = [("command", {"command": line}) for line in ("echo one", "echo two; uname", "uname")]
    async with opened(("skill", {"name": "report"}), commands[0], guards=True) as agent:
        await agent.invoke("go")
    assert [one for one in approver.requests if one.kind == "effect"] == []
    approver.answer = Approval("deny")
    async with opened(("skill", {"name": "report"}), *commands[1:], guards=True) as agent:
        await agent.invoke("go")
    asked = [one.effect["args"][1] for one in approver.requests if one.kind == "effect"]
    assert asked == ["exec 2>&1; echo two; uname", "exec 2>&1; uname"]


async def test_guard_asks_about_each_change_in_the_mode_manual(opened, make_skill, approver, work, settings):
    make_skill({}, more=ALLOWS)
    (work / "a.txt").write_text("one")
    approver.answer = Approval("allow")
    edit = {"path": "a.txt", "edits": [{"old": "one", "new": "two"}]}
    calls = [("read", {"path": "a.txt"}), ("skill", {"name": "report"}), ("edit", edit)]
    async with opened(*calls, guards=True, mode="manual") as agent:
        await agent.invoke("go")
    assert len([one for one in approver.requests if one.kind == "effect"]) == 1


WRITES = [("write", {"path": f"{number}.txt", "content": "x"}) for number in range(3)]


def asked_paths(approver):
    return [one.effect["path"].rpartition("/")[2] for one in approver.requests if one.kind == "effect"]


async def then(agent, script, *calls):
    script.turns += [*(Turn(tool_calls=[one]) for one in calls), "done"]
    await agent.invoke("go on")


@pytest.mark.parametrize("scope", ["always", "session"])
async def test_revoked_grant_pre_approves_nothing_more_in_a_running_session(opened, make_skill, approver, scope):
    make_skill({}, more="allowed-tools: Write\n")
    approver.answer = Approval("allow", scope)
    script = Scripted([])
    async with opened(("skill", {"name": "report"}), WRITES[0], guards=True, script=script) as agent:
        await agent.invoke("go")
        approver.answer = Approval("deny")
        await then(agent, script, WRITES[1])
        assert asked_paths(approver) == []
        (given,) = [one for one in await given_grants(agent.host) if any("allow" in text for text in one.capabilities)]
        await revoke_grant(agent.host, given.id)
        await then(agent, script, WRITES[2])
        assert asked_paths(approver) == ["2.txt"]


async def test_grant_for_the_session_pre_approves_nothing_in_its_fork(opened, make_skill, approver):
    make_skill({}, more="allowed-tools: Write\n")
    script = Scripted([])
    async with opened(("skill", {"name": "report"}), WRITES[0], guards=True, script=script) as agent:
        await agent.invoke("go")
        await agent.fork()
        await then(agent, script, WRITES[1])
        assert asked_paths(approver) == ["1.txt"]


async def test_approval_for_once_holds_as_long_as_the_skill_is_active(opened, make_skill, approver):
    make_skill({}, more="allowed-tools: Write\n")
    approver.answer = Approval("allow")
    script = Scripted([])
    async with opened(("skill", {"name": "report"}), *WRITES[:2], guards=True, script=script) as agent:
        await agent.invoke("go")
        assert asked_paths(approver) == []
