"""The mode `plan`: nothing changes before a person has approved a plan."""

import pytest
import sideband_guard_approval.plugin
import sideband_llm.plugin
from sideband import Plugin
from sideband.approvals import Approval
from sideband.hooks import hookimpl
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn

from .conftest import Stage

pytestmark = pytest.mark.anyio
ONCE = Approval("allow", by="me")
PLAN = "1. write a.txt: the greeting\n2. run the tests"
SUBMITS = ("plan", {"plan": PLAN})
WRITE = ("write", {"path": "a.txt", "content": "hi\n"})


async def test_changes_are_denied_with_what_to_do_until_a_person_has_approved_the_plan(stage, work):
    async with stage(ONCE, ONCE, mode="plan") as on:
        turns = [Turn(tool_calls=[SUBMITS]), Turn(tool_calls=[WRITE])]
        denied, approved, written = await on.calls(WRITE, turns=turns)
        assert "nothing may be changed before the user has approved a plan" in denied
        assert "then call the tool `plan`" in denied
        assert "The approval mode is `assist` now" in approved
        assert written == "created a.txt (1 line, 3 bytes)"
        assert on.asked == ["plan", "files.write"]
        assert on.agent.approval_mode == "assist"


async def test_question_shows_the_whole_plan_and_the_mode_that_follows_and_holds_once(stage):
    async with stage(ONCE, mode="plan", guard={"after_plan": "semi"}) as on:
        await on.calls(SUBMITS)
        (request,) = on.person.asked
        assert request.preview == PLAN
        assert "The mode is then `semi`, which asks before changes of the level RESTRICTED" in request.question
        assert request.grants == {}
        assert on.agent.approval_mode == "semi"


async def test_reason_of_a_refusal_reaches_the_model_which_may_submit_another_plan(stage):
    async with stage(Approval("deny", reason="run the tests first", by="me"), ONCE, mode="plan") as on:
        other = ("plan", {"plan": "1. run the tests\n2. write a.txt"})
        refused, approved = await on.calls(SUBMITS, turns=[Turn(tool_calls=[other])])
        assert "run the tests first" in refused
        assert "approved the plan" in approved
        assert on.agent.approval_mode == "assist"


async def test_changes_in_the_same_turn_as_the_plan_are_decided_in_the_mode_that_follows(stage, work):
    async with stage(ONCE, ONCE, mode="plan", guard={"after_plan": "manual"}) as on:
        await on.calls(SUBMITS, WRITE)
        assert on.asked == ["plan", "files.write"]


async def test_plan_too_long_to_be_shown_completely_is_rejected_without_a_question(stage):
    async with stage(ONCE, mode="plan") as on:
        for text in ("x" * 3_501, "x\n" * 40 + "x", "  "):
            (rejected,) = await on.calls(("plan", {"plan": text}))
            assert "Invalid arguments for plan" in rejected
        assert on.asked == []
        assert on.agent.approval_mode == "plan"


async def test_model_gets_the_tool_in_the_mode_plan_only(stage):
    async with stage(mode="plan") as on:
        await on.calls(("list", {}))
        await on.agent.select_approval_mode("manual")
        await on.calls(("list", {}))
        sent = [[one.name for one in request.tools].count("plan") for request in on.script.requests]
        assert sent == [1, 1, 0, 0]


async def test_denial_does_not_name_the_tool_to_an_agent_that_may_not_call_it(stage):
    async with stage(mode="plan", tools=["write"]) as on:
        (denied,) = await on.calls(WRITE)
        assert "end your turn with your plan" in denied
        assert "call the tool" not in denied


async def test_plan_that_waits_for_a_person_changes_the_mode_when_the_run_continues(stage):
    async with stage(mode="plan", approver=False) as on:
        on.script.turns += [Turn(tool_calls=[SUBMITS])]
        assert (await on.agent.invoke("go")).status == "parked"
        session = on.agent.session.id
    async with stage(mode="plan", approver=False, session=session) as on:
        assert on.agent.approval_mode == "plan"
        (stored,) = await on.agent.host.approvals.list()
        await on.agent.host.approvals.answer(stored.request.id, ONCE)
        on.script.turns += ["done"]
        await on.agent.resume()
        assert on.agent.approval_mode == "assist"


async def test_approval_of_a_childs_plan_changes_the_mode_of_the_session(stage):
    events = []
    async with stage(ONCE, mode="plan", on_event=events.append) as on:
        await on.calls(("subagent", {"task": "plan it"}), turns=[Turn(tool_calls=[SUBMITS]), "planned"])
        assert on.asked == ["plan"]
        assert on.agent.approval_mode == "assist"
    (changed,) = [one for one in events if one.hook == "approval_mode_select"]
    assert (changed.mode, changed.previous, changed.source) == ("assist", "plan", "plan")


async def test_tool_that_is_called_plan_changes_no_mode_outside_of_it(stage):
    async with stage(ONCE, mode="manual") as on:
        await on.calls(SUBMITS)
        assert on.asked == []
        assert on.agent.approval_mode == "manual"


class AllTools:
    @hookimpl
    def tool_selection(self, event):
        return [one.name for one in event.candidates]


async def test_plan_that_a_model_submits_in_another_mode_is_not_asked_about_and_changes_no_mode(stage):
    async with stage(ONCE, mode="manual", more=[Plugin("hook", "all", AllTools())]) as on:
        (denied,) = await on.calls(SUBMITS)
        assert "no plan is needed in the approval mode `manual`" in denied
        assert "plan" in [one.name for one in on.script.requests[0].tools]
        assert (on.asked, on.agent.approval_mode) == ([], "manual")


async def test_plan_does_not_count_as_approved_without_the_guard(sideband_host):
    script = Scripted([Turn(tool_calls=[SUBMITS]), "done"])
    plugins = [
        Plugin("op", "llm", sideband_llm.plugin),
        Plugin("provider", "scripted", script),
        Plugin("tool", "plan", sideband_guard_approval.plugin.plan),
    ]
    host = sideband_host(*plugins, settings={"agent": {"model": "scripted:test"}})
    async with host as opened, Agent(opened) as agent:
        (text,) = Stage.texts(await agent.invoke("go"))
        assert text == "The plan was not examined: no guard has asked the user about it."
