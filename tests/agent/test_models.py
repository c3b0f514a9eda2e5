"""Failed model steps: retry, fallback, parking, compaction, and the conversation afterwards."""

import pytest
from sideband import Plugin
from sideband.hooks import Compact, GiveUp, Park, Retry
from sideband.providers import ProviderRefused
from sideband_agent import Agent, ModelMissing
from sideband_scripted import Broken, Scripted, Turn

pytestmark = pytest.mark.anyio


def refused(status=529):
    return ProviderRefused("scripted", "overloaded", status=status, hint="wait a little")


def answering(answer, kit, events=None):
    def model_error(event):
        if events is not None:
            events.append(event)
        return answer(event) if callable(answer) else answer

    return Plugin("hook", "rules", kit.hooks(model_error=model_error))


@pytest.mark.parametrize("failures", [1, 2, 3])
async def test_failed_call_is_retried_with_the_same_history(stage, kit, failures):
    events = []
    turns = [*[refused() for _ in range(failures)], "at last"]
    plugins = [answering(Retry(0, "overloaded"), kit, events)]
    async with stage(turns, *plugins) as agent:
        result = await agent.invoke("hi")
        requests = agent.scripted.requests
        stored = [message.text for message in agent.session.messages()]
    assert (result.status, result.text) == ("completed", "at last")
    assert len(requests) == failures + 1
    assert all(request.messages == requests[0].messages for request in requests)
    assert stored == ["hi", "at last"]
    assert [event.attempt for event in events] == list(range(1, failures + 1))


async def test_broken_stream_is_not_stored_as_an_answer(stage, kit):
    async with stage([Broken(after=2), "whole"], answering(Retry(0), kit)) as agent:
        result = await agent.invoke("hi")
        assert [message.text for message in agent.session.messages()] == ["hi", "whole"]
    assert result.text == "whole"


async def test_empty_answer_is_retried(stage, kit):
    async with stage([Turn(), "something"], answering(Retry(0), kit)) as agent:
        assert (await agent.invoke("hi")).text == "something"


async def test_failure_without_a_retry_plugin_fails_the_run_with_a_hint(stage):
    async with stage([refused(401)]) as agent:
        result = await agent.invoke("hi")
        assert len(agent.scripted.requests) == 1
        assert [message.text for message in agent.session.messages()] == ["hi"]
    assert (result.status, result.exit_code) == ("failed", 4)
    assert result.error["code"] == "provider.refused"
    assert result.error["hint"] == "wait a little"


async def test_hint_of_the_plugin_that_gives_up_is_reported(stage, kit):
    async with stage([refused(402)], answering(GiveUp("billing", "pay your bill"), kit)) as agent:
        result = await agent.invoke("hi")
    assert (result.error["kind"], result.error["hint"]) == ("billing", "pay your bill")


async def test_failed_run_is_resumed_without_new_input(stage, kit):
    async with stage([Turn(tool_calls=[("echo", {"text": "x"})]), refused(), "done"], kit.echo) as agent:
        first = await agent.invoke("hi")
        second = await agent.resume()
        assert await agent.resume() is None
        kit.assert_valid(agent.session.messages())
        texts = [message.text for message in agent.session.messages()]
    assert (first.status, second.status, second.run) == ("failed", "completed", first.run)
    assert texts == ["hi", "", "x", "done"]


async def test_park_answer_parks_the_run(stage, kit):
    async with stage([refused(429), "later"], answering(Park(2_000_000_000.0, "quota", "wait"), kit)) as agent:
        result = await agent.invoke("hi")
        assert (await agent.resume()).text == "later"
    assert (result.status, result.resume_at) == ("parked", 2_000_000_000.0)
    assert result.error["hint"] == "wait"


async def test_fallback_model_is_used_and_emitted(stage, kit):
    other = Plugin("provider", "other", Scripted(["from the other"], name="other"))
    settings = {"agent": {"model": "scripted:test", "fallbacks": ["other:test"]}}
    events = []
    plugins = [answering(GiveUp("auth"), kit), other, Plugin("hook", "ears", kit.listening(events))]
    async with stage([refused(401), "first again"], *plugins, settings=settings) as agent:
        result = await agent.invoke("hi")
        assert agent.model == "scripted:test"
        assert (await agent.invoke("again")).text == "first again"
    selected = [event for event in events if event.hook == "model_select"]
    assert [(event.model, event.source) for event in selected] == [("other:test", "fallback")]
    assert (result.text, result.messages[-1].model) == ("from the other", "other:test")


async def test_overlong_conversation_is_compacted_once(stage, kit):
    events = []

    def answer(event):
        return GiveUp("context_overflow") if event.compacted else Compact()

    long = "word " * 400
    plugins = [answering(answer, kit, events)]
    settings = {"agent": {"model": "scripted:test", "compaction": {"keep": 10}}}
    async with stage(["ok", refused(413), "short enough"], *plugins, settings=settings) as agent:
        await agent.invoke(long)
        result = await agent.invoke("go on")
        first, last = agent.scripted.requests[1], agent.scripted.requests[2]
        assert sum(len(one.text) for one in last.messages) < sum(len(one.text) for one in first.messages)
        assert last.messages[-1].text == "go on"
    assert result.text == "short enough"
    assert [event.compacted for event in events] == [False]


async def test_number_of_retries_is_bounded(stage, kit):
    async with stage([refused()], answering(Retry(0), kit), scripted=Scripted([refused()], repeat=True)) as agent:
        result = await agent.invoke("hi")
        assert len(agent.scripted.requests) == 100
    assert result.status == "failed"


async def test_model_call_denied_by_a_guard_fails_the_run_without_retries(stage, kit):
    from sideband.hooks import Deny, hookimpl

    class NoModels:
        @hookimpl
        def op_call(self, event):
            return Deny("no models on Sundays") if event.op == "llm.generate" else None

    events = []
    plugins = [answering(Retry(0), kit, events), Plugin("guard", "sunday", NoModels)]
    async with stage(["never"], *plugins) as agent:
        result = await agent.invoke("hi")
        assert not agent.scripted.requests
    assert "no models on Sundays" in result.error["message"]
    assert (result.exit_code, events) == (3, [])


async def test_run_without_a_model_is_rejected(stage, kit):
    async with stage([], settings={"agent": {}}) as agent:
        agent._model = None
        with pytest.raises(ModelMissing) as error:
            await agent.invoke("hi")
        assert not agent.session.messages()
        assert agent.is_idle
    assert "provider:model" in error.value.hint


async def test_selected_model_is_stored_with_the_session(stage):
    async with stage(["one", "two"]) as agent:
        await agent.select_model("scripted:large")
        result = await agent.invoke("hi")
        name = agent.session.id
        await agent.new_session()
        async with Agent(agent.host) as other:
            assert other.model == "scripted:test"
            await other.switch_session(name)
            assert other.model == "scripted:large"
    assert result.messages[-1].model == "scripted:large"


async def test_cost_of_a_run_is_added_up(stage, kit):
    from sideband.providers import Prices

    scripted = Scripted(
        [Turn(tool_calls=[("echo", {"text": "x"})]), "ok"], prices=Prices(input=1_000_000, output=1_000_000)
    )
    async with stage([], kit.echo, scripted=scripted) as agent:
        result = await agent.invoke("hi")
        assert agent.usage == result.usage
    assert result.usage.cost == pytest.approx(result.usage.input + result.usage.output)


async def test_key_in_a_provider_error_is_redacted(stage, kit):
    import json

    events = []

    def echoing(request):
        agent.host.redactor.protect("sk-very-secret-key", "scripted")
        body = "x" * 3_990 + "sk-very-secret-key"
        return ProviderRefused("scripted", "bad key sk-very-secret-key", status=401, body=body)

    async with stage([echoing], answering(GiveUp("auth"), kit, events)) as agent:
        result = await agent.invoke("hi")
        stored = [entry.model_dump_json() for entry in agent.session.path()]
        recorded = "".join(path.read_text() for path in agent.host.ledger.folder.rglob("*.jsonl"))
    for text in (json.dumps(result.error), *stored, json.dumps(events[0].error), recorded):
        assert "sk-very" not in text
    assert "provider.refused" in recorded


async def test_context_window_is_that_of_the_answering_model(stage, kit):
    windows = []

    def turn_end(event, ctx):
        windows.append((ctx.model, ctx.agent.context_window))

    small = Plugin(
        "provider", "other", Scripted([Turn(tool_calls=[("echo", {})]), "ok"], name="other", context_window=9_000)
    )
    settings = {"agent": {"model": "scripted:test", "fallbacks": ["other:test"]}}
    plugins = [answering(GiveUp("auth"), kit), small, kit.echo, Plugin("hook", "looking", kit.hooks(turn_end=turn_end))]
    turns = [Turn(tool_calls=[("echo", {"text": "long " * 2_000})]), refused(401)]
    async with stage(turns, *plugins, settings=settings) as agent:
        assert (await agent.invoke("hi")).text == "ok"
        assert agent.context_window == 200_000
    assert windows == [("scripted:test", 200_000), ("other:test", 9_000), ("other:test", 9_000)]
