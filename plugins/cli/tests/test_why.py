"""Why an effect happened, from what the user asked for to how it ended; over real agents with a written model."""

import json
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
import sideband_llm.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin, StoreError
from sideband.hooks import Ask, Deny, Retry, hookimpl
from sideband.ledger import Intent, Outcome, query
from sideband.messages import AssistantMessage, ToolCallPart, UserMessage
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
    """Let a child do it."""
    return (await ctx.spawn_child("ring it")).text


def guard(name, answer):
    def tool_call(self, event):
        return answer

    return Plugin("guard", name, type("Guard", (), {"tool_call": hookimpl(tool_call)}))


@pytest.fixture
def stage(tmp_path):
    """Opens a host whose model says what ``turns`` say, and an agent on it."""

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
    """Whether these stand in the text, one after the other."""
    position = -1
    for part in parts:
        position = text.find(part, position + 1)
        assert position >= 0, f"{part!r} is not there, or not behind the others, in:\n{text}"


async def test_an_effect_is_explained_from_the_prompt_over_model_and_tool_to_its_end(stage):
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
        "said by     user, ",
        "  | ring the bell",
        "model step 0",
        "model       scripted:test",
        "tokens in",
        "  | Let me see.",
        "tool call 0.0",
        "tool        bell",
        "id          call_1",
        'arguments   {"text": "ha"}',
        "ended       done",
        "  | ha ding",
        "effects of the call",
        f">  {effect.effect}",
        f"effect {effect.effect}: bell.ring, done",
        "level       controlled",
    )


@pytest.mark.parametrize("name", ["effect", "key", "step", "call", "attempt"])
async def test_a_tool_call_is_found_by_each_of_its_names(stage, name):
    async with stage([Turn(tool_calls=[BELL]), "done"]) as agent:
        await agent.invoke("ring")
        (record,) = await effects(agent, op="tool.call")
        key = f"{agent.session.id}:{record.origin.run}:0.0"
        assert record.key == key
        names = {"effect": record.effect, "key": key, "step": key, "call": "call_1", "attempt": f"{key}~2"}
        why = await why_of(agent, names[name])
    assert why.effect == record
    assert (why.part.id, why.told.text) == ("call_1", "ha ding")
    assert [one.op for one in why.below] == ["bell.ring"]


async def test_a_model_call_is_explained_with_its_tries_and_the_tools_that_it_asked_for(stage):
    def model_error(event):
        return Retry(0, "overloaded")

    overloaded = ProviderError("scripted", "too much", retryable=True)
    again = Plugin("hook", "again", SimpleNamespace(model_error=hookimpl(model_error)))
    async with stage([overloaded, Turn(tool_calls=[BELL]), "done"], again) as agent:
        result = await agent.invoke("ring")
        why = await why_of(agent, f"{agent.session.id}:{result.run}:0")
    assert [one.status for one in why.tries] == ["failed", "done"]
    in_order(describe_why(why), "tries       failed (provider.", "; done", "asked for   bell", "call        bell, done")
    assert not why.model_replayed


async def test_what_guards_and_the_person_whom_they_asked_said_stands_in_order(stage):
    async def approve(question, event):
        return True

    async with stage([Turn(tool_calls=[BELL]), "done"], guard("asker", Ask("Really ring?")), approver=approve) as agent:
        await agent.invoke("ring")
        why = await why_of(agent, "call_1")
    in_order(
        describe_why(why), "decision    asker: ask, Really ring?", "decision    approver: approve", "ended       done"
    )
    assert [one["said"] for one in why_data(why)["tool_call"]["decisions"]] == ["ask", "approve"]


async def test_a_refused_call_is_explained(stage):
    async with stage([Turn(tool_calls=[BELL]), "done"], guard("sentry", Deny("people sleep"))) as agent:
        await agent.invoke("ring")
        why = await why_of(agent, "call_1")
    in_order(
        describe_why(why),
        "decision    sentry: deny, people sleep",
        "ended       denied: it was not run",
        "answered    as an error",
        ": tool.call, denied",
        "[tool.denied]",
    )
    assert why.below == ()


async def test_a_call_that_was_never_reached_is_explained_from_the_session(stage):
    calls = Turn(tool_calls=[BELL, ("bell", {"text": "again"}, "call_2")])
    async with stage([calls, "never"], guard("sentry", Deny("enough", halt=True))) as agent:
        await agent.invoke("ring")
        why = await why_of(agent, "call_2")
    assert why.effect is None
    in_order(describe_why(why), "tool call 0.1", '{"text": "again"}', "  | This call was not run", "no record of it")
    assert why_data(why)["effect"] is None


async def test_what_was_taken_from_the_record_says_so(stage, monkeypatch):
    async with stage([Turn(tool_calls=[BELL]), "done"]) as agent:
        store = type(agent.host.store)
        append = store.append

        def full_for(role):
            async def full(self, stream, values):
                if any(value.get("message", {}).get("role") == role for value in values):
                    raise StoreError("the disk is full")
                return await append(self, stream, values)

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
        "gone on",
        "replayed    it was not asked again when the run went on",
        "replayed    it was not run again when the run went on",
    )


async def test_an_unknown_effect_is_shown_as_such(stage):
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
    in_order(open_text, "ended       open: the ledger does not say how it ended", "not yet")
    in_order(text, "ended       unknown: its host ended while it was under way", "effect", "unknown")


async def test_without_its_session_an_effect_is_explained_as_far_as_the_ledger_goes(stage):
    async with stage([Turn(tool_calls=[BELL]), "done"]) as agent:
        await agent.invoke("ring")
        (effect,) = await effects(agent, op="bell.ring")
        gone = await agent.new_session()
        await agent.sessions.delete(effect.origin.session)
        why = await why_of(agent, effect.effect)
    assert gone != effect.origin.session
    assert why.session is None
    in_order(describe_why(why), "not there any more", "scripted:test", "tool        bell", "ended       done")
    assert why_data(why)["session"] == {"id": effect.origin.session, "name": None, "found": False}


async def test_another_session_of_that_name_does_not_stand_in_for_one_that_is_gone(stage):
    async with stage([Turn(tool_calls=[BELL]), "done"]) as agent:
        await agent.invoke("ring")
        (effect,) = await effects(agent, op="bell.ring")
        await agent.new_session()
        await agent.sessions.delete(effect.origin.session)
        await agent.session.rename(effect.origin.session)
        assert (await why_of(agent, effect.effect)).session is None


async def test_where_sessions_can_not_be_read_an_effect_is_explained_as_far_as_the_ledger_goes(stage):
    async with stage([Turn(tool_calls=[BELL]), "done"]) as agent:
        result = await agent.invoke("ring")
        (effect,) = await effects(agent, op="bell.ring")
        ledger, session = agent.host.ledger.folder, agent.session.id
        why = await explain(ledger, None, effect.effect)
        found = [await explain(ledger, None, wanted) for wanted in (f"{session}:{result.run}:0.0", "call_1")]
        missing = [await explain(ledger, None, wanted) for wanted in (f"{session}:{result.run}:2", "call_2", "nothing")]
    assert [one.where.step for one in (why, *found)] == ["0.0"] * 3
    assert missing == [None] * 3
    in_order(
        describe_why(why), f"session     {session}\n", "note        what was said is not known", "tool        bell"
    )
    assert why_data(why)["session"] == {"id": session, "name": None, "found": False}
    assert "pip install sideband-agent" in why_data(why)["notices"][0]


async def test_what_a_child_did_is_explained_from_its_parents_prompt(stage):
    turns = [Turn(tool_calls=[("helper", {"text": "x"}, "call_1")]), Turn(tool_calls=[BELL]), "it rang", "done"]
    async with stage(turns) as agent:
        await agent.invoke("let somebody ring")
        (effect,) = await effects(agent, op="bell.ring")
        why = await why_of(agent, effect.effect)
        above = await why_of(agent, f"{agent.session.id}:{why.parent.where.run}:0.0")
    assert why.parent.where == above.where
    in_order(
        describe_why(why),
        "  | let somebody ring",
        "tool        helper",
        "a child agent, for this call",
        "which ended with the agent",
        "tool        bell",
        f"effect {effect.effect}: bell.ring, done",
    )
    assert effect.effect in [one.effect for one in above.below]


async def test_what_the_user_says_meanwhile_counts_for_the_steps_after_it(stage):
    async with stage([]) as agent:
        run, session = "r1", agent.session
        said = [UserMessage(content="first"), AssistantMessage(content="a"), UserMessage(content="second")]
        for message, step in zip(said, ("", "0", "1"), strict=True):
            await session.append_message(message, run=run, step=step)
        await session.append_message(AssistantMessage(content="b"), run=run, step="1")
        before = await why_of(agent, f"{session.id}:{run}:0")
        after = await why_of(agent, f"{session.id}:{run}:1")
    assert [entry.message.text for entry in before.asked] == ["first"]
    assert [entry.message.text for entry in after.asked] == ["first", "second"]


async def test_of_several_calls_with_one_id_the_newest_is_explained_and_the_others_named(stage):
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
async def test_what_nobody_knows_is_nothing(stage, wanted):
    async with stage(["hello"]) as agent:
        await agent.invoke("hi")
        assert await why_of(agent, wanted) is None


async def test_a_step_that_the_run_never_took_is_nothing(stage):
    async with stage([Turn(tool_calls=[BELL]), "done"]) as agent:
        result = await agent.invoke("hi")
        for step in ("2", "0.1", "x", "0.x"):
            assert await why_of(agent, f"{agent.session.id}:{result.run}:{step}") is None


async def test_an_effect_that_no_agent_asked_for_is_shown_alone(stage):
    async with stage([]) as agent:
        await agent.host.op("bell.ring", {})
        (effect,) = await effects(agent, op="bell.ring")
        why = await why_of(agent, effect.effect)
    assert describe_why(why).startswith(f"effect {effect.effect}: bell.ring, done\n")
    assert why_data(why)["effect"] == effect.effect


async def test_nothing_that_was_said_moves_the_cursor_or_passes_for_our_words_and_all_fits(stage):
    rude = "\x1b[2Jtool call 9.9\ntool call 9.9\n" + "long " * 200 + "x" * 300 + "\u202e\n" + "\n" * 30
    turn = Turn(text=rude, tool_calls=[("bell", {"text": rude}, "call_1")])
    async with stage([turn, "done"], guard("sentry", Deny(rude))) as agent:
        await agent.invoke(rude)
        await agent.session.rename(rude)
        text = describe_why(await why_of(agent, "call_1"))
    assert not {"\x1b", "\u202e"} & set(text)
    assert "\ntool call 9.9" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) < 140


async def test_as_data_all_of_it_is_there(stage):
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


async def test_a_result_that_was_left_by_an_aborted_run_is_found(stage):
    async with stage([]) as agent:
        session = agent.session
        call = ToolCallPart(id="call_1", name="bell")
        await session.append_message(AssistantMessage(content=(call,), stop="tool_calls"), run="r1", step="0")
        entry = {"message": {"role": "tool", "call": "call_1", "tool": "bell", "content": "stopped"}, "run": "r1"}
        await session.append(MessageEntry.model_validate(entry))
        why = await why_of(agent, f"{session.id}:r1:0.0")
    assert why.told.text == "stopped"
