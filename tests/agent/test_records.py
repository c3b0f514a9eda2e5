"""Tool calls in the ledger: calls that ran, denied calls, and the decisions of guards."""

import pytest
from pydantic import BaseModel
from sideband import Plugin, StoreError
from sideband.approvals import Approval
from sideband.hooks import Allow, Ask, Deny, Replace, hookimpl
from sideband.ledger import query
from sideband.ops import Level, OpFamily, OpSpec, op
from sideband.tools import tool
from sideband_agent import Agent
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


class Nothing(BaseModel):
    pass


@op("bell.ring", level=Level.CONTROLLED)
async def ring(params: Nothing, ctx) -> str:
    """Ring."""
    return "ding"


class Bell:
    """An op family."""

    @staticmethod
    def sideband_ops():
        return OpFamily("bell", (ring,))


def call(name="echo", **arguments):
    return Turn(tool_calls=[(name, arguments or {"text": "ha"})])


def guard(name, answer):
    def tool_call(self, event):
        return answer(event) if callable(answer) else answer

    return Plugin("guard", name, type("Guard", (), {"tool_call": hookimpl(tool_call)}))


async def calls_of(agent):
    return await query(agent.host.ledger.folder, op="tool.call", session=agent.session.id)


async def test_decisions_of_guards_are_recorded_in_order(stage, kit):
    async def approve(request):
        return Approval("allow")

    guards = [
        guard("a-watcher", Allow("seen before")),
        guard("b-tamer", lambda event: Replace({"text": "tame"}) if event.arguments["text"] == "wild" else None),
        guard("c-asker", Ask("Really?")),
    ]
    async with stage([call(text="wild"), "ok"], kit.echo, *guards, approver=approve) as agent:
        await agent.invoke("hi")
        (record,) = await calls_of(agent)
    assert record.status == "done"
    assert record.params == {"tool": "echo", "arguments": {"text": "tame"}, "call": record.params["call"]}
    assert record.decisions[:3] == (
        {"plugin": "b-tamer", "said": "replace"},
        {"plugin": "c-asker", "said": "ask", "note": "Really?"},
        {"plugin": "a-watcher", "said": "allow", "note": "seen before"},
    )
    assert (record.decisions[3]["by"], record.decisions[3]["said"]) == ("approver", "approve")


async def test_denied_call_is_recorded_with_its_arguments(stage, kit):
    plugins = [kit.echo, guard("sentry", Deny("too loud"))]
    async with stage([call(text="the value is canary-7f3a9c51"), "ok"], *plugins) as agent:
        agent.host.redactor.protect("canary-7f3a9c51", "canary")
        result = await agent.invoke("hi")
        (record,) = await calls_of(agent)
        (answer,) = [message for message in agent.session.messages() if message.role == "tool"]
    assert (record.status, record.error["code"]) == ("denied", "tool.denied")
    assert record.params["arguments"] == {"text": "the value is [redacted:canary]"}
    assert record.decisions == ({"plugin": "sentry", "said": "deny", "note": "too loud"},)
    assert (record.origin.run, record.origin.step, record.origin.tool) == (result.run, "0.0", "echo")
    assert [entry.kind for entry in record.entries] == ["outcome"]
    known = {"code": "tool.denied", "error_class": "SAFETY_BLOCKED"}
    assert answer.metadata == {**known, "effect": record.effect, "plugin": "sentry"}


async def test_refusal_is_recorded_with_its_reason(stage, kit):
    async def approve(request):
        return Approval("deny", reason="not on Fridays", by="Ann")

    async with stage([call(), "ok"], kit.echo, guard("asker", Ask("Really?")), approver=approve) as agent:
        await agent.invoke("hi")
        (record,) = await calls_of(agent)
    assert record.status == "denied"
    assert record.decisions[0] == {"plugin": "asker", "said": "ask", "note": "Really?"}
    answer = record.decisions[1]
    assert (answer["by"], answer["said"], answer["note"]) == ("Ann", "refuse", "not on Fridays")
    assert record.error["message"].endswith("it was not approved (not on Fridays): Really?")


@pytest.mark.parametrize(
    ("name", "arguments", "tool_name"), [("nothing", {"a": 1}, None), ("echo", {"text": ["no", "text"]}, "echo")]
)
async def test_invalid_call_is_recorded_as_failed(stage, kit, name, arguments, tool_name):
    async with stage([call(name, **arguments), "ok"], kit.echo) as agent:
        await agent.invoke("hi")
        (record,) = await calls_of(agent)
    assert (record.status, record.error["code"]) == ("failed", "tool.rejected")
    assert (record.params["tool"], record.params["arguments"]) == (name, arguments)
    assert (record.origin.tool, record.key) == (tool_name, None)


async def test_effects_of_a_tool_are_recorded_under_its_name(stage, kit):
    @tool("bell")
    async def bell(params: kit.Text, ctx) -> str:
        """Ring the bell."""
        return await ctx.dispatch("bell.ring", {})

    plugins = [Plugin("op", "bell", Bell), Plugin("tool", "bell", bell)]
    async with stage([call("bell"), "ok"], *plugins) as agent:
        await agent.invoke("hi")
        below, above = await query(agent.host.ledger.folder, session=agent.session.id, tool="bell")
    assert (below.op, above.op) == ("bell.ring", "tool.call")
    assert (below.origin.step, below.origin.plugin, below.status) == ("0.0", "bell", "done")


@pytest.mark.parametrize("go_on", [True, False], ids=["resumed", "given up"])
async def test_replayed_answer_is_marked(stage, kit, monkeypatch, go_on):
    async with stage([call(), "ok"], kit.echo) as agent:
        store = type(agent.host.store)
        append = store.append

        async def full(self, stream, values, **options):
            if any(value.get("message", {}).get("role") == "tool" for value in values):
                raise StoreError("the disk is full")
            return await append(self, stream, values, **options)

        with monkeypatch.context() as patch:
            patch.setattr(store, "append", full)
            assert (await agent.invoke("hi")).status == "failed"
        result = await (agent.resume() if go_on else agent.invoke("something else"))
        assert result.status == "completed"
        (answer,) = [message for message in agent.session.messages() if message.role == "tool"]
        (record,) = await calls_of(agent)
    assert answer.metadata["replayed"] is True
    assert answer.metadata["effect"] == record.effect
    assert (answer.text, record.status) == ("ha", "done")


async def test_new_answer_is_not_marked_as_replayed(stage, kit):
    async with stage([call(), "ok"], kit.echo) as agent:
        await agent.invoke("hi")
        (answer,) = [message for message in agent.session.messages() if message.role == "tool"]
        (record,) = await calls_of(agent)
    assert answer.metadata["effect"] == record.effect
    assert "replayed" not in answer.metadata


async def test_effects_of_a_child_name_the_call_of_its_parent(stage, kit):
    @tool("helper")
    async def helper(params: kit.Text, ctx) -> str:
        """Delegate to a child."""
        return (await ctx.spawn_child("do it")).text

    turns = [call("helper"), call("echo"), "done by a child", "ok"]
    async with stage(turns, kit.echo, Plugin("tool", "helper", helper)) as agent:
        result = await agent.invoke("hi")
        above = f"{agent.session.id}:{result.run}:0.0"
        found = await query(agent.host.ledger.folder, parent=above)
        own = await query(agent.host.ledger.folder, session=agent.session.id)
    assert [(one.op, one.origin.step) for one in found] == [
        ("llm.generate", "1"),
        ("tool.call", "0.0"),
        ("llm.generate", "0"),
    ]
    assert {one.origin.parent for one in own} == {None}


async def test_op_of_tool_calls_is_built_once_per_level_for_all_agents(stage, kit, monkeypatch):
    from sideband_agent._tools import _tool_effects

    made = []

    def make(**fields):
        made.append(fields["level"])
        return OpSpec(**fields)

    monkeypatch.setattr(_tool_effects, "OpSpec", make)
    _tool_effects._op.cache_clear()
    calls = Turn(tool_calls=[("echo", {"text": str(number)}) for number in range(3)])
    async with stage([calls, calls, "fine", call("echo"), "fine"], kit.echo) as agent:
        await agent.invoke("hi")
        async with Agent(agent.host) as other:
            await other.invoke("hi")
    assert made == [Level.MONITORED]
