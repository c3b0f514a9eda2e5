import pytest
from pydantic import ValidationError
from sideband.messages import CarryingTuple, UserMessage, parse_message
from sideband.ops import EgressRefused, OpDenied, OpParamsInvalid
from sideband.providers import ModelRequest, ThinkingDelta, ToolCallDelta, ToolSchema
from sideband_llm._models import GenerateParams

pytestmark = pytest.mark.anyio


async def test_result_is_the_message_of_the_last_event(host, ask):
    message = parse_message(await ask(host))
    assert message.text == "hello"
    assert message.model == "fake:m"


async def test_deltas_are_emitted_as_they_arrive(host, fake, make, ask):
    fake.script = [ThinkingDelta(text="hm"), ToolCallDelta(index=0, name="t", arguments="{"), make.answer()]
    parts = []
    await ask(host, parts=parts)
    assert parts == [
        {"type": "thinking", "text": "hm"},
        {"type": "tool_call", "index": 0, "name": "t", "arguments": "{"},
    ]


async def test_provider_receives_the_whole_request(host, fake, ask):
    await ask(
        host,
        system="be brief",
        messages=[{"role": "user", "content": [{"type": "text", "text": "a"}]}],
        tools=[{"name": "t", "description": "d", "parameters": {"type": "object"}}],
        tool_choice="required",
        output_schema={"type": "object"},
        max_tokens=7,
        temperature=0.5,
        thinking="low",
        stop=["x"],
        cache_key="k",
        options={"seed": 1},
    )
    (request,) = fake.requests
    assert request.model_dump(exclude={"messages", "tools"}) == {
        "model": "m",
        "system": "be brief",
        "tool_choice": "required",
        "output_schema": {"type": "object"},
        "max_tokens": 7,
        "temperature": 0.5,
        "thinking": "low",
        "stop": ("x",),
        "cache_key": "k",
        "options": {"seed": 1},
    }
    assert request.messages[0].text == "a"
    assert request.tools[0].name == "t"


async def test_tools_of_an_agent_reach_the_provider_as_one_object(host, fake, ask):
    tools = CarryingTuple([ToolSchema(name="t")])
    await ask(host, tools=tools)
    assert fake.requests[0].tools is tools


@pytest.mark.parametrize("others", [[UserMessage(content="hi")], [ToolSchema(name="t"), {"name": 3}]])
def test_only_schemas_are_tools(others):
    with pytest.raises(ValidationError, match="tools"):
        GenerateParams(model="fake:m", messages=(UserMessage(content="hi"),), tools=CarryingTuple(others))


async def test_params_have_the_fields_of_a_model_request():
    assert set(GenerateParams.model_fields) == set(ModelRequest.model_fields)
    assert all(field.description for field in GenerateParams.model_fields.values())


@pytest.mark.parametrize(
    "messages",
    [[], [{"role": "user"}], [{"role": "system", "content": "x"}], [{"role": "user", "content": [{"type": "video"}]}]],
    ids=str,
)
async def test_invalid_messages_are_rejected(host, fake, ask, messages):
    with pytest.raises(OpParamsInvalid):
        await ask(host, messages=messages)
    assert fake.requests == []


@pytest.mark.parametrize("grants", [(), ("llm:model=fake:n",), ("llm:model=other:*",), ("llm:model=m",)])
async def test_model_without_grant_is_not_called(host, fake, ask, grants):
    with pytest.raises(OpDenied, match=r"llm:model=fake:m"):
        await ask(host, grants=grants)
    assert fake.requests == []


@pytest.mark.parametrize("grants", [("llm",), ("llm:model=fake:m",), ("llm:model=fake:*",), ("llm:model=fake%3Am",)])
async def test_model_with_grant_is_called(host, fake, ask, grants):
    await ask(host, grants=grants)
    assert len(fake.requests) == 1


async def test_call_with_a_key_is_made_once(host, fake, ask):
    first = await ask(host, key="session:run:1")
    assert await ask(host, key="session:run:1") == first
    assert len(fake.requests) == 1


async def test_failed_call_may_be_repeated_under_its_key(host, fake, make, ask):
    fake.script = [RuntimeError("broken")]
    with pytest.raises(Exception, match="broken"):
        await ask(host, key="session:run:1")
    fake.script = [make.answer()]
    assert (await ask(host, key="session:run:1"))["content"][0]["text"] == "hello"


async def test_conversation_is_not_in_the_ledger_without_a_key(host, ask):
    await ask(host, messages=[{"role": "user", "content": "private words"}], system="private prompt", max_tokens=77)
    text = "".join(path.read_text() for path in (host.home / "ledger").rglob("*.jsonl"))
    assert "private" not in text
    assert "hello" not in text
    assert "fake:m" in text
    assert "77" in text


@pytest.mark.parametrize(
    "params",
    [
        {"system": "the key is canary-7f3a9c51"},
        {"messages": [{"role": "user", "content": "canary-7f3a9c51"}]},
        {"tools": [{"name": "t", "description": "canary-7f3a9c51", "parameters": {"type": "object"}}]},
        {"options": {"seed": "canary-7f3a9c51"}},
    ],
    ids=["system", "message", "tool", "option"],
)
async def test_known_secret_is_not_sent_to_a_model(host, fake, ask, params):
    host.redactor.protect("canary-7f3a9c51", "canary", origins=["https://api.example.org"])
    with pytest.raises(EgressRefused, match="request to the model"):
        await ask(host, **params)
    assert fake.requests == []


@pytest.mark.parametrize("kind", [list, tuple])
async def test_messages_that_are_data_are_validated(host, fake, ask, kind):
    with pytest.raises(OpParamsInvalid, match="messages"):
        await ask(host, messages=kind([UserMessage(content="hello"), {"role": "nobody", "content": "hello"}]))
    assert fake.requests == []


async def test_messages_that_were_validated_before_are_sent_as_they_are(host, fake, ask):
    message = UserMessage(content="hello")
    await ask(host, messages=(message,))
    assert fake.requests[0].messages[0] is message
