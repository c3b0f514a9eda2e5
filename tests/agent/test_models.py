"""Model steps that fail: again, another model, later, shorter; and what is left of the conversation."""

import pytest
from sideband import Plugin
from sideband.hooks import Compact, GiveUp, Park, Retry
from sideband.providers import ProviderRefused
from sideband_agent import Agent, ModelMissing
from sideband_scripted import Broken, Scripted, Turn

pytestmark = pytest.mark.anyio


def refused(status=529):
    return ProviderRefused("scripted", "overloaded", status=status, hint="wait a little")


def answering(answer, kit, heard=None):
    def model_error(event):
        if heard is not None:
            heard.append(event)
        return answer(event) if callable(answer) else answer

    return Plugin("hook", "rules", kit.hooks(model_error=model_error))


@pytest.mark.parametrize("failures", [1, 2, 3])
async def test_a_call_is_made_again_as_often_as_it_takes_with_the_same_history(stage, kit, failures):
    heard = []
    turns = [*[refused() for _ in range(failures)], "at last"]
    plugins = [answering(Retry(0, "overloaded"), kit, heard)]
    async with stage(turns, *plugins) as agent:
        result = await agent.invoke("hi")
        requests = agent.scripted.requests
        stored = [message.text for message in agent.session.messages()]
    assert (result.status, result.text) == ("completed", "at last")
    assert len(requests) == failures + 1
    assert all(request.messages == requests[0].messages for request in requests)
    assert stored == ["hi", "at last"]
    assert [event.attempt for event in heard] == list(range(1, failures + 1))


async def test_a_stream_that_breaks_off_is_never_an_answer(stage, kit):
    async with stage([Broken(after=2), "whole"], answering(Retry(0), kit)) as agent:
        result = await agent.invoke("hi")
        assert [message.text for message in agent.session.messages()] == ["hi", "whole"]
    assert result.text == "whole"


async def test_an_empty_answer_is_asked_for_again(stage, kit):
    async with stage([Turn(), "something"], answering(Retry(0), kit)) as agent:
        assert (await agent.invoke("hi")).text == "something"


async def test_without_an_answer_to_a_failure_there_is_one_try_and_a_hint(stage):
    async with stage([refused(401)]) as agent:
        result = await agent.invoke("hi")
        assert len(agent.scripted.requests) == 1
        assert [message.text for message in agent.session.messages()] == ["hi"]
    assert (result.status, result.exit_code) == ("failed", 4)
    assert result.error["code"] == "provider.refused"
    assert result.error["hint"] == "wait a little"


async def test_whoever_gives_up_says_what_to_do(stage, kit):
    async with stage([refused(402)], answering(GiveUp("billing", "pay your bill"), kit)) as agent:
        result = await agent.invoke("hi")
    assert (result.error["kind"], result.error["hint"]) == ("billing", "pay your bill")


async def test_a_run_that_failed_can_be_resumed_without_saying_anything_again(stage, kit):
    async with stage([Turn(tool_calls=[("echo", {"text": "x"})]), refused(), "done"], kit.echo) as agent:
        first = await agent.invoke("hi")
        second = await agent.resume()
        assert await agent.resume() is None
        kit.assert_valid(agent.session.messages())
        texts = [message.text for message in agent.session.messages()]
    assert (first.status, second.status, second.run) == ("failed", "completed", first.run)
    assert texts == ["hi", "", "x", "done"]


async def test_a_limit_that_ends_later_parks_the_run(stage, kit):
    async with stage([refused(429), "later"], answering(Park(2_000_000_000.0, "quota", "wait"), kit)) as agent:
        result = await agent.invoke("hi")
        assert (await agent.resume()).text == "later"
    assert (result.status, result.resume_at) == ("parked", 2_000_000_000.0)
    assert result.error["hint"] == "wait"


async def test_the_next_model_of_the_chain_is_tried_and_told(stage, kit):
    other = Plugin("provider", "other", Scripted(["from the other"], name="other"))
    settings = {"agent": {"model": "scripted:test", "fallbacks": ["other:test"]}}
    heard = []
    plugins = [answering(GiveUp("auth"), kit), other, Plugin("hook", "ears", kit.listening(heard))]
    async with stage([refused(401), "first again"], *plugins, settings=settings) as agent:
        result = await agent.invoke("hi")
        assert agent.model == "scripted:test"
        assert (await agent.invoke("again")).text == "first again"
    selected = [event for event in heard if event.hook == "model_select"]
    assert [(event.model, event.source) for event in selected] == [("other:test", "fallback")]
    assert (result.text, result.messages[-1].model) == ("from the other", "other:test")


async def test_a_conversation_that_is_too_long_is_made_shorter_once(stage, kit):
    heard = []

    def answer(event):
        return GiveUp("context_overflow") if event.compacted else Compact()

    long = "word " * 400
    plugins = [answering(answer, kit, heard)]
    settings = {"agent": {"model": "scripted:test", "compaction": {"keep": 10}}}
    async with stage(["ok", refused(413), "short enough"], *plugins, settings=settings) as agent:
        await agent.invoke(long)
        result = await agent.invoke("go on")
        first, last = agent.scripted.requests[1], agent.scripted.requests[2]
        assert sum(len(one.text) for one in last.messages) < sum(len(one.text) for one in first.messages)
        assert last.messages[-1].text == "go on"
    assert result.text == "short enough"
    assert [event.compacted for event in heard] == [False]


async def test_a_plugin_that_retries_for_ever_comes_to_an_end(stage, kit):
    async with stage([refused()], answering(Retry(0), kit), scripted=Scripted([refused()], repeat=True)) as agent:
        result = await agent.invoke("hi")
        assert len(agent.scripted.requests) == 100
    assert result.status == "failed"


async def test_a_guard_that_refuses_the_model_call_ends_the_run_at_once(stage, kit):
    from sideband.hooks import Deny, hookimpl

    class NoModels:
        @hookimpl
        def op_call(self, event):
            return Deny("no models on Sundays") if event.op == "llm.generate" else None

    heard = []
    plugins = [answering(Retry(0), kit, heard), Plugin("guard", "sunday", NoModels)]
    async with stage(["never"], *plugins) as agent:
        result = await agent.invoke("hi")
        assert not agent.scripted.requests
    assert "no models on Sundays" in result.error["message"]
    assert (result.exit_code, heard) == (3, [])


async def test_without_a_model_the_run_does_not_begin(stage, kit):
    async with stage([], settings={"agent": {}}) as agent:
        agent._model = None
        with pytest.raises(ModelMissing) as error:
            await agent.invoke("hi")
        assert not agent.session.messages()
        assert agent.is_idle
    assert "provider:model" in error.value.hint


async def test_another_model_is_used_and_remembered_with_the_session(stage):
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


async def test_the_cost_of_a_run_is_added_up(stage, kit):
    from sideband.providers import Prices

    scripted = Scripted(
        [Turn(tool_calls=[("echo", {"text": "x"})]), "ok"], prices=Prices(input=1_000_000, output=1_000_000)
    )
    async with stage([], kit.echo, scripted=scripted) as agent:
        result = await agent.invoke("hi")
        assert agent.usage == result.usage
    assert result.usage.cost == pytest.approx(result.usage.input + result.usage.output)


async def test_what_a_server_says_of_a_key_reaches_nobody(stage, kit):
    import json

    heard = []

    def echoing(request):
        agent.host.redactor.protect("sk-very-secret-key", "scripted")
        body = "x" * 3_990 + "sk-very-secret-key"
        return ProviderRefused("scripted", "bad key sk-very-secret-key", status=401, body=body)

    async with stage([echoing], answering(GiveUp("auth"), kit, heard)) as agent:
        result = await agent.invoke("hi")
        stored = [entry.model_dump_json() for entry in agent.session.path()]
        recorded = "".join(path.read_text() for path in agent.host.ledger.folder.rglob("*.jsonl"))
    for text in (json.dumps(result.error), *stored, json.dumps(heard[0].error), recorded):
        assert "sk-very" not in text
    assert "provider.refused" in recorded


async def test_the_window_is_that_of_the_model_that_answers(stage, kit):
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
