"""Repeated calls are answered from their records, after a resume or a rewind, and pass the same guards."""

import pytest
from sideband import Plugin
from sideband.hooks import Deny, Patch, hookimpl
from sideband.tools import tool
from sideband_agent import Budget
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio

TWO = Turn(tool_calls=[("count", {"text": "1"}), ("count", {"text": "2"})])


def counting(kit, ran):
    @tool("count", exclusive=True)
    async def count(params: kit.Text, ctx) -> str:
        """Count."""
        ran.append(params.text)
        return f"counted {params.text}"

    return Plugin("tool", "count", count)


def answers(agent):
    return [message.text for message in agent.session.messages() if message.role == "tool"]


def call(number):
    return Turn(tool_calls=[("count", {"text": number})])


async def test_guards_are_not_asked_again_about_recorded_calls(stage, kit):
    asked = []

    class Late:
        @hookimpl
        def tool_call(self, event):
            asked.append(event.arguments["text"])
            return Deny("not any more") if len(asked) > 2 else None

    ran = []
    async with stage([TWO, "fine"], counting(kit, ran), budget=Budget(calls=1), guards={"late": Late}) as agent:
        assert (await agent.invoke("hi")).status == "parked"
        agent.allowance.limit = Budget()
        assert (await agent.resume()).status == "completed"
        texts = answers(agent)
    assert texts[0] == "counted 1"
    assert "not any more" in texts[1]
    assert (asked, ran) == (["1", "2", "2"], ["1"])


@pytest.mark.parametrize("how", ["resume", "invoke"])
async def test_result_patch_applies_to_recorded_results(stage, kit, how):
    class Hiding:
        @hookimpl
        def tool_result(self, event):
            return Patch(content="hidden")

    budget = Budget(calls=1)
    async with stage([TWO, "fine"], counting(kit, []), budget=budget, guards={"hiding": Hiding}) as agent:
        assert (await agent.invoke("hi")).status == "parked"
        agent.allowance.limit = Budget()
        await (agent.resume() if how == "resume" else agent.invoke("never mind"))
        assert set(answers(agent)) == {"hidden"}


async def test_resume_after_a_rewind_is_a_new_run(stage, kit):
    ran = []
    turns = [call("1"), "fine", call("2"), "other"]
    async with stage(turns, counting(kit, ran)) as agent:
        first = await agent.invoke("hi")
        place = next(entry.id for entry in agent.session.path() if entry.type == "message")
        await agent.rewind(place)
        second = await agent.resume()
        texts = [message.text for message in agent.session.messages()]
    assert (second.text, ran) == ("other", ["1", "2"])
    assert texts == ["hi", "", "counted 2", "other"]
    assert first.run != second.run


async def test_recorded_call_is_replayed_after_a_rewind_to_it(stage, kit):
    ran = []
    async with stage([call("1"), "fine", "other"], counting(kit, ran)) as agent:
        await agent.invoke("hi")
        asking = [entry.id for entry in agent.session.path() if entry.type == "message"][1]
        await agent.rewind(asking)
        result = await agent.resume()
        assert answers(agent) == ["counted 1"]
    assert (result.text, ran) == ("other", ["1"])
