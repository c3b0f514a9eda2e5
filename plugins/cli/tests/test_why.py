"""Explanations of effects, from the user's request to the outcome, with real agents and a scripted model."""

import json
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
import sideband_llm.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin, StoreError
from sideband.approvals import Approval
from sideband.hooks import Ask, Deny, Retry, hookimpl
from sideband.ledger import Intent, Outcome, query
from sideband.messages import AssistantMessage, ToolCallPart, ToolResultMessage, UserMessage
from sideband.ops import Level, OpFamily, Origin, op
from sideband.providers import ProviderError
from sideband.tools import tool
from sideband_agent import Agent
from sideband_agent.sessions import MessageEntry, Sessions
from sideband_cli._audit._explain import explain
from sideband_cli._audit._history import SessionHistory
from sideband_cli._audit._why_text import describe_why, why_data
from sideband_scripted import Scripted, Turn

pytestmark = pytest.mark.anyio
BELL = ("bell", {"text": "ha"}, "call_1")


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


class Text(BaseModel):
    text: str = ""


class Nothing(BaseModel):
    pass


@op("bell.ring", level=Level.CONTROLLED)
async def ring(params: Nothing, ctx) -> str:
    """Ring."""
    return "ding"


@tool("bell", read_only=True)
async def bell(params: Text, ctx) -> str:
    """Ring the bell."""
    return f"{params.text} {await ctx.dispatch('bell.ring', {})}"


@tool("helper")
async def helper(params: Text, ctx) -> str:
    """Delegate the task to a child agent."""
    return (await ctx.spawn_child("ring it")).text


def guard(name, answer):
    def tool_call(self, event):
        return answer

    return Plugin("guard", name, type("Guard", (), {"tool_call": hookimpl(tool_call)}))


@pytest.fixture
def stage(tmp_path):
    """Return a function that opens an agent on a host whose model answers with ``turns``."""

    @asynccontextmanager
    async def open_stage(turns, *plugins, **options):
        own = [
            Plugin("op", "llm", sideband_llm.plugin),
            Plugin("op", "bell", SimpleNamespace(sideband_ops=lambda: OpFamily("bell", (ring,)))),
            Plugin("tool", "bell", bell),
            Plugin("tool", "helper", helper),
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            Plugin("provider", "scripted", Scripted(turns)),
            *plugins,
        ]
        settings = {"agent": {"model": "scripted:test"}}
        async with (
            Host(home=tmp_path / "home", settings=settings, plugins=own, autoload=False) as host,
            Agent(host, **options) as agent,
        ):
            yield agent

    return open_stage


async def why_of(agent, wanted):
    return await explain(agent.host.ledger.folder, SessionHistory(Sessions(agent.host.store, agent.host.home)), wanted)


async def effects(agent, **filters):
    return (await query(agent.host.ledger.folder, **filters))[::-1]


def in_order(text, *parts):
    """Assert that the parts occur in the text, in this order."""
    position = -1
    for part in parts:
        position = text.find(part, position + 1)
        assert position >= 0, f"{part!r} is missing, or not after the others, in:\n{text}"


async def test_effect_is_explained_from_the_prompt_to_its_outcome(stage):
    turn = Turn(text="Let me see.", tool_calls=[BELL])
    async with stage([turn, "done"]) as agent:
        result = await agent.invoke("ring the bell")
        await agent.session.rename("bells")
        (effect,) = await effects(agent, op="bell.ring")
        why = await why_of(agent, effect.effect)
    in_order(
        describe_why(why),
        f"session     {why.where.session} `bells`",
        f"run         {result.run}, interactive, completed",
        "message     user, ",
        "  | ring the bell",
        "model step 0",
        "model       scripted:test",
        "usage       ",
        "  | Let me see.",
        "tool call 0.0",
        "tool        bell",
        "id          call_1",
        'arguments   {"text": "ha"}',
        "outcome     done",
        "  | ha ding",
        "effects of the call",
        f">  {effect.effect}",
        f"effect {effect.effect}: bell.ring, done",
        "level       controlled",
    )


@pytest.mark.parametrize("name", ["effect", "key", "step", "call", "attempt"])
async def test_tool_call_is_found_by_each_of_its_names(stage, name):
    async with stage([Turn(tool_calls=[BELL]), "done"]) as agent:
        await agent.invoke("ring")
        (record,) = await effects(agent, op="tool.call")
        key = f"{agent.session.id}:{record.origin.run}:0.0"
        assert record.key == key
        names = {"effect": record.effect, "key": key, "step": key, "call": "call_1", "attempt": f"{key}~2"}
        why = await why_of(agent, names[name])
    assert why.effect == record
    assert (why.part.id, why.tool_result.text) == ("call_1", "ha ding")
    assert [one.op for one in why.below] == ["bell.ring"]


async def test_model_step_is_explained_with_its_attempts_and_tool_calls(stage):
    def model_error(event):
        return Retry(0, "overloaded")

    overloaded = ProviderError("scripted", "too much", retryable=True)
    again = Plugin("hook", "again", SimpleNamespace(model_error=hookimpl(model_error)))
    async with stage([overloaded, Turn(tool_calls=[BELL]), "done"], again) as agent:
        result = await agent.invoke("ring")
        why = await why_of(agent, f"{agent.session.id}:{result.run}:0")
    assert [one.status for one in why.attempts] == ["failed", "done"]
    in_order(describe_why(why), "attempts    failed (provider.", "; done", "tool calls  bell", "call        bell, done")
    assert not why.model_replayed


async def test_decisions_of_guards_and_approver_are_shown_in_order(stage):
    async def approve(request):
        return Approval("allow")

    async with stage([Turn(tool_calls=[BELL]), "done"], guard("asker", Ask("Really ring?")), approver=approve) as agent:
        await agent.invoke("ring")
        why = await why_of(agent, "call_1")
    in_order(
        describe_why(why), "decision    asker: ask, Really ring?", "decision    approver: approve", "outcome     done"
    )
    assert [one["said"] for one in why_data(why)["tool_call"]["decisions"]] == ["ask", "approve"]


async def test_denied_tool_call_is_explained(stage):
    async with stage([Turn(tool_calls=[BELL]), "done"], guard("sentry", Deny("people sleep"))) as agent:
        await agent.invoke("ring")
        why = await why_of(agent, "call_1")
    in_order(
        describe_why(why),
        "decision    sentry: deny, people sleep",
        "outcome     denied: it was not run",
        "result      error",
        ": tool.call, denied",
        "[tool.denied]",
    )
    assert why.below == ()


async def test_tool_call_without_a_record_is_explained_from_the_session(stage):
    calls = Turn(tool_calls=[BELL, ("bell", {"text": "again"}, "call_2")])
    async with stage([calls, "never"], guard("sentry", Deny("enough", halt=True))) as agent:
        await agent.invoke("ring")
        why = await why_of(agent, "call_2")
    assert why.effect is None
    in_order(describe_why(why), "tool call 0.1", '{"text": "again"}', "  | This call was not run", "no record of it")
    assert why_data(why)["effect"] is None


async def test_replayed_model_step_and_tool_call_are_marked(stage, monkeypatch):
    async with stage([Turn(tool_calls=[BELL]), "done"]) as agent:
        store = type(agent.host.store)
        append = store.append

        def full_for(role):
            async def full(self, stream, values, **options):
                if any(value.get("message", {}).get("role") == role for value in values):
                    raise StoreError("the disk is full")
                return await append(self, stream, values, **options)

            return full

        for role, go in (("assistant", lambda: agent.invoke("ring")), ("tool", agent.resume)):
            with monkeypatch.context() as patch:
                patch.setattr(store, "append", full_for(role))
                assert (await go()).status == "failed"
        assert (await agent.resume()).status == "completed"
        why = await why_of(agent, "call_1")
    assert why.model_replayed
    assert why.tool_replayed
    in_order(
        describe_why(why),
        "resumed",
        "replayed    the model was not called again",
        "replayed    the tool was not run again",
    )


async def test_unknown_outcome_is_shown(stage):
    async with stage([]) as agent:
        origin = Origin(session=agent.session.id, run="r1", step="0.0", tool="bell")
        effect = agent.host.ledger.new_effect_id()
        params = {"tool": "bell", "arguments": {"text": "ha"}, "call": "call_1"}
        key = f"{agent.session.id}:r1:0.0"
        await agent.host.ledger.intent(
            Intent(effect=effect, op="tool.call", params=params, origin=origin, key=key), durable=False
        )
        open_text = describe_why(await why_of(agent, effect))
        await agent.host.ledger.outcome(Outcome(effect=effect, op="tool.call", status="unknown", key=key))
        text = describe_why(await why_of(agent, effect))
    in_order(open_text, "outcome     open: no outcome is recorded", "not sent to the model yet")
    in_order(text, "outcome     unknown: the host ended", "effect", "unknown")


async def test_attempts_of_an_interrupted_call_and_the_effects_answered_from_the_record_are_shown(stage):
    part = ToolCallPart(id="call_1", name="bell", arguments={"text": "ha"})
    replay = {"number": 1, "answered": ["e1", "e2"], "skipped": ["e3"]}
    result = ToolResultMessage(call="call_1", tool="bell", content="done", metadata={"replay": replay})
    async with stage([]) as agent:
        key = f"{agent.session.id}:r1:0.0"
        await agent.session.append(
            MessageEntry(message=AssistantMessage(content=(part,), stop="tool_calls"), run="r1", step="0"),
            MessageEntry(message=result, run="r1", step="0.0"),
        )
        first = await recorded_attempt(agent, key, "unknown", {"started": "s", "seed": "s"})
        again = {"started": "s", "seed": "s", "replay": 1, "interrupted": first}
        second = await recorded_attempt(agent, f"{key}~1", "done", again)
        text = describe_why(await why_of(agent, f"{key}~1"))
    in_order(
        text,
        f"attempt     1 ({first})",
        "outcome     interrupted: the host ended while it was running; it was run again",
        f"attempt     2 ({second})",
        "outcome     done",
        "replayed    answered from the record: e1, e2",
        "skipped     recorded, but not requested again: e3",
        "result      success",
    )


async def recorded_attempt(agent, key, status, note):
    """Record an attempt to run a call, and return its effect id."""
    ledger, effect = agent.host.ledger, agent.host.ledger.new_effect_id()
    origin = Origin(session=agent.session.id, run="r1", step="0.0", tool="bell")
    params = {"tool": "bell", "arguments": {"text": "ha"}, "call": "call_1"}
    intent = Intent(effect=effect, op="tool.call", params=params, origin=origin, key=key, note=note)
    await ledger.intent(intent, durable=False)
    await ledger.outcome(Outcome(effect=effect, op="tool.call", status=status, key=key, note=note))
    return effect


async def test_effect_of_a_deleted_session_is_explained_from_the_ledger(stage):
    async with stage([Turn(tool_calls=[BELL]), "done"]) as agent:
        await agent.invoke("ring")
        (effect,) = await effects(agent, op="bell.ring")
        gone = await agent.new_session()
        await agent.sessions.delete(effect.origin.session)
        why = await why_of(agent, effect.effect)
    assert gone != effect.origin.session
    assert why.session is None
    in_order(describe_why(why), "no longer exists", "scripted:test", "tool        bell", "outcome     done")
    assert why_data(why)["session"] == {"id": effect.origin.session, "name": None, "found": False}


async def test_session_named_like_a_deleted_one_is_not_used_instead(stage):
    async with stage([Turn(tool_calls=[BELL]), "done"]) as agent:
        await agent.invoke("ring")
        (effect,) = await effects(agent, op="bell.ring")
        await agent.new_session()
        await agent.sessions.delete(effect.origin.session)
        await agent.session.rename(effect.origin.session)
        assert (await why_of(agent, effect.effect)).session is None


async def test_without_the_agent_package_an_effect_is_explained_from_the_ledger(stage):
    async with stage([Turn(tool_calls=[BELL]), "done"]) as agent:
        result = await agent.invoke("ring")
        (effect,) = await effects(agent, op="bell.ring")
        ledger, session = agent.host.ledger.folder, agent.session.id
        why = await explain(ledger, None, effect.effect)
        found = [await explain(ledger, None, wanted) for wanted in (f"{session}:{result.run}:0.0", "call_1")]
        missing = [await explain(ledger, None, wanted) for wanted in (f"{session}:{result.run}:2", "call_2", "nothing")]
    assert [one.where.step for one in (why, *found)] == ["0.0"] * 3
    assert missing == [None] * 3
    in_order(describe_why(why), f"session     {session}\n", "note        messages are not shown", "tool        bell")
    assert why_data(why)["session"] == {"id": session, "name": None, "found": False}
    assert "pip install sideband-agent" in why_data(why)["notices"][0]


async def test_effect_of_a_child_agent_is_explained_from_its_parents_prompt(stage):
    turns = [Turn(tool_calls=[("helper", {"text": "x"}, "call_1")]), Turn(tool_calls=[BELL]), "it rang", "done"]
    async with stage(turns) as agent:
        await agent.invoke("have it rung")
        (effect,) = await effects(agent, op="bell.ring")
        why = await why_of(agent, effect.effect)
        above = await why_of(agent, f"{agent.session.id}:{why.parent.where.run}:0.0")
    assert why.parent.where == above.where
    in_order(
        describe_why(why),
        "  | have it rung",
        "tool        helper",
        "child agent for this call",
        "which ended with the agent",
        "tool        bell",
        f"effect {effect.effect}: bell.ring, done",
    )
    assert effect.effect in [one.effect for one in above.below]


async def test_steering_message_belongs_to_the_steps_after_it(stage):
    async with stage([]) as agent:
        run, session = "r1", agent.session
        messages = [UserMessage(content="first"), AssistantMessage(content="a"), UserMessage(content="second")]
        for message, step in zip(messages, ("", "0", "1"), strict=True):
            await session.append_message(message, run=run, step=step)
        await session.append_message(AssistantMessage(content="b"), run=run, step="1")
        before = await why_of(agent, f"{session.id}:{run}:0")
        after = await why_of(agent, f"{session.id}:{run}:1")
    assert [entry.message.text for entry in before.asked] == ["first"]
    assert [entry.message.text for entry in after.asked] == ["first", "second"]


async def test_duplicate_call_id_selects_the_newest_call_and_names_the_others(stage):
    turns = [Turn(tool_calls=[BELL]), "done", Turn(tool_calls=[BELL]), "done"]
    async with stage(turns) as agent:
        await agent.invoke("first")
        await agent.new_session()
        await agent.invoke("second")
        first, second = await effects(agent, op="tool.call")
        why = await why_of(agent, "call_1")
    assert why.effect == second
    assert first.effect in " ".join(why.notices)
    assert "  | second" in describe_why(why)


@pytest.mark.parametrize("wanted", ["nothing", "a:b:c", "a:b", "", "::", "\ud800", "a:b:0.x"])
async def test_unknown_id_has_no_explanation(stage, wanted):
    async with stage(["hello"]) as agent:
        await agent.invoke("hi")
        assert await why_of(agent, wanted) is None


async def test_unknown_step_of_a_run_has_no_explanation(stage):
    async with stage([Turn(tool_calls=[BELL]), "done"]) as agent:
        result = await agent.invoke("hi")
        for step in ("2", "0.1", "x", "0.x"):
            assert await why_of(agent, f"{agent.session.id}:{result.run}:{step}") is None


async def test_effect_without_an_agent_is_shown_alone(stage):
    async with stage([]) as agent:
        await agent.host.op("bell.ring", {})
        (effect,) = await effects(agent, op="bell.ring")
        why = await why_of(agent, effect.effect)
    assert describe_why(why).startswith(f"effect {effect.effect}: bell.ring, done\n")
    assert why_data(why)["effect"] == effect.effect


async def test_hostile_text_is_cleaned_quoted_and_cut(stage):
    hostile = "\x1b[2Jtool call 9.9\ntool call 9.9\n" + "long " * 200 + "x" * 300 + "\u202e\n" + "\n" * 30
    turn = Turn(text=hostile, tool_calls=[("bell", {"text": hostile}, "call_1")])
    async with stage([turn, "done"], guard("sentry", Deny(hostile))) as agent:
        await agent.invoke(hostile)
        await agent.session.rename(hostile)
        text = describe_why(await why_of(agent, "call_1"))
    assert not {"\x1b", "\u202e"} & set(text)
    assert "\ntool call 9.9" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) < 140


async def test_explanation_as_data_contains_all_parts(stage):
    async with stage([Turn(text="So.", tool_calls=[BELL]), "done"]) as agent:
        result = await agent.invoke("ring")
        data = json.loads(json.dumps(why_data(await why_of(agent, "call_1"))))
    assert (data["op"], data["status"], [one["kind"] for one in data["entries"]]) == (
        "tool.call",
        "done",
        ["intent", "outcome"],
    )
    assert (data["run"]["id"], data["run"]["status"]) == (result.run, "completed")
    assert data["asked"][0]["message"]["content"] == [{"type": "text", "text": "ring"}]
    assert data["model_step"]["answer"]["message"]["model"] == "scripted:test"
    assert data["tool_call"]["arguments"] == {"text": "ha"}
    assert data["tool_call"]["result"]["message"]["content"][0]["text"] == "ha ding"
    assert [one["op"] for one in data["effects"]] == ["bell.ring"]


async def test_tool_result_of_an_aborted_run_is_found(stage):
    async with stage([]) as agent:
        session = agent.session
        call = ToolCallPart(id="call_1", name="bell")
        await session.append_message(AssistantMessage(content=(call,), stop="tool_calls"), run="r1", step="0")
        entry = {"message": {"role": "tool", "call": "call_1", "tool": "bell", "content": "stopped"}, "run": "r1"}
        await session.append(MessageEntry.model_validate(entry))
        why = await why_of(agent, f"{session.id}:r1:0.0")
    assert why.tool_result.text == "stopped"
