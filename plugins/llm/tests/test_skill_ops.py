"""Text and typed data from a model, without tools."""

import anyio
import pytest
from sideband.broker import Call
from sideband.messages import Usage
from sideband.ops import OpDenied, Origin
from sideband.providers import Prices, ProviderRefused
from sideband_llm import ModelBudgetSpent, ModelUnpriced, OutputInvalid, OutputSchemaInvalid
from sideband_scripted import Hang, Scripted, Turn

pytestmark = pytest.mark.anyio

MODEL = "scripted:test"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def turn(text, tokens=100, **fields):
    return Turn(text=text, usage=Usage(input=tokens - 10, output=10), **fields)


async def oneshot(host, prompt="Where?", grants=None, **params):
    return await host.op("llm.oneshot", {"model": MODEL, "prompt": prompt, **params}, grants=grants)


async def test_oneshot_returns_text_or_data_that_fits_the_schema(open_host):
    script = Scripted([turn("Graz."), turn('{"city": "Graz"}'), turn('```json\n{"city": "Linz"}\n```')])
    async with open_host(script) as host:
        text = await oneshot(host, system="Be short.", temperature=0.0, max_tokens=50)
        assert (text["content"], text["data"], text["attempts"], text["model"]) == ("Graz.", None, 1, MODEL)
        assert text["usage"]["input"] == 90
        data = await oneshot(host, output_schema=CITY)
        assert (data["data"], data["attempts"]) == ({"city": "Graz"}, 1)
        assert (await oneshot(host, output_schema=CITY))["data"] == {"city": "Linz"}
    first, second, _ = script.requests
    assert (first.system, first.temperature, first.max_tokens) == ("Be short.", 0.0, 50)
    assert (second.output_schema, second.temperature) == (CITY, None)


async def test_answer_that_does_not_fit_is_corrected_a_limited_number_of_times(open_host):
    wrong = ["Graz", '{"town": "Graz"}', '{"city": 1}', '{"city": 2}', '{"city": NaN}', '{"city": "a", "city": "b"}']
    script = Scripted([*map(turn, wrong[:2]), turn('{"city": "Graz"}'), *map(turn, wrong[2:4]), *map(turn, wrong[4:])])
    async with open_host(script) as host:
        found = await oneshot(host, output_schema=CITY)
        assert (found["data"], found["attempts"], found["usage"]["input"]) == ({"city": "Graz"}, 3, 270)
        sent = script.requests[2].messages
        assert [one.role for one in sent] == ["user", "assistant", "user", "assistant", "user"]
        assert 'must have the property "city"' in sent[-1].text
        with pytest.raises(OutputInvalid, match="none of 2 answers of the model fits") as raised:
            await oneshot(host, output_schema=CITY, repairs=1)
        assert (raised.value.attempts, raised.value.problem) == (2, "`city` must be a text, got 2")
        for problem in ("NaN is not a JSON value", "an object has a property twice"):
            with pytest.raises(OutputInvalid, match=problem):
                await oneshot(host, output_schema=CITY, repairs=0)


@pytest.mark.parametrize(("stop", "why"), [("length", "maximum length"), ("refusal", "refused to answer")])
async def test_answer_that_was_cut_or_refused_is_not_corrected(open_host, stop, why):
    script = Scripted([turn('{"city": "Gr', stop=stop), turn("never")])
    async with open_host(script) as host:
        with pytest.raises(OutputInvalid, match=why):
            await oneshot(host, output_schema=CITY)
    assert len(script.requests) == 1


async def test_invalid_schema_is_refused_before_the_model_is_called(open_host):
    script = Scripted([])
    async with open_host(script) as host:
        for schema in ({"$ref": "#/$defs/none"}, {"not": {}}, {"enum": ["x" * 70_000]}):
            with pytest.raises(OutputSchemaInvalid):
                await oneshot(host, output_schema=schema)
    assert script.requests == []


async def test_chat_continues_a_conversation(open_host):
    script = Scripted([turn("In Styria.")])
    messages = [
        {"role": "user", "content": "Where is Graz?"},
        {"role": "assistant", "content": "In Austria."},
        {"role": "user", "content": "More exactly?"},
    ]
    async with open_host(script) as host:
        answer = await host.op("llm.chat", {"model": MODEL, "messages": messages, "system": "Be short."})
        assert (answer["content"], answer["stop"]) == ("In Styria.", "end")
    assert [one.text for one in script.requests[0].messages] == ["Where is Graz?", "In Austria.", "More exactly?"]


async def test_model_must_be_granted_and_its_errors_are_those_of_the_provider(open_host):
    async with open_host(Scripted([ProviderRefused("scripted", "no", status=400)])) as host:
        for grants in ([], ["llm:model=other:m"]):
            with pytest.raises(OpDenied):
                await oneshot(host, grants=grants)
        with pytest.raises(ProviderRefused, match="no"):
            await oneshot(host, grants=["llm:model=scripted:test"])


async def test_capability_limits_the_tokens_of_all_model_calls_of_a_call(open_host):
    script = Scripted([turn("no", 60), turn("no", 60), turn('{"city": "Graz"}', 60)])
    async with open_host(script) as host:
        with pytest.raises(ModelBudgetSpent, match=r"used 120 tokens .* allows no more for `scripted:test`"):
            await oneshot(host, output_schema=CITY, grants=["llm:model=scripted:test,tokens=120"])
        assert len(script.requests) == 2
        # The next call has the whole amount again.
        assert (await oneshot(host, output_schema=CITY, grants=["llm:tokens=1"]))["attempts"] == 1


async def test_capability_limits_the_money(open_host):
    script = Scripted([turn("no", 1_000)] * 4, prices=Prices(input=1_000, output=1_000))
    async with open_host(script) as host:
        with pytest.raises(ModelBudgetSpent, match=r"\$2.000000"):
            await oneshot(host, output_schema=CITY, repairs=5, grants=["llm:money=2"])
        assert len(script.requests) == 2
        with pytest.raises(ModelBudgetSpent):
            await oneshot(host, grants=["llm:money=0"])
        # Several capabilities: the one that allows more counts, for its model.
        with pytest.raises(ModelBudgetSpent, match=r"\$2.000000"):
            await oneshot(
                host, output_schema=CITY, repairs=5, grants=["llm:money=0.5", "llm:model=scripted:*,money=1.5"]
            )


async def test_money_cannot_be_limited_without_prices(open_host, fake):
    async with open_host(fake) as host:
        with pytest.raises(ModelUnpriced, match="prices of fake:m are unknown"):
            await host.op("llm.oneshot", {"model": "fake:m", "prompt": "x"}, grants=["llm:money=5"])
    assert fake.requests == []


async def test_cancelled_model_calls_count(open_host):
    hang = Hang(after=8, turn="x" * 4_000)
    script = Scripted([hang, turn("done", 50)])
    async with open_host(script) as host:
        call = Call(
            id="call",
            grant=await host.broker.ops.grant(["llm:tokens=900"]),
            domain="test",
            origin=Origin(skill="s"),
            deadline=anyio.current_time() + 30,
        )
        params = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.broker.dispatch, call, "llm.generate", params)
            await hang.reached.wait()
            tasks.cancel_scope.cancel()
        with pytest.raises(ModelBudgetSpent):
            await host.broker.dispatch(call, "llm.generate", params)
        await call.end(lambda error: None)
