import pytest

pytestmark = pytest.mark.anyio

IMAGE = {"type": "image", "media_type": "image/png", "data": "AAAA"}


@pytest.fixture
def server(shared_server):
    return shared_server


@pytest.fixture
def client(shared_client):
    return shared_client


@pytest.fixture
def body(client, server, make):
    """Return a function that sends a model request and returns the request body."""
    server.reply(make.events(make.chunk(content="x"), make.chunk(finish="stop")))

    async def sent(**fields):
        await client.ask(**fields)
        return server.requests[-1].json()

    return sent


async def messages(body, *given, **fields):
    return (await body(messages=list(given), **fields))["messages"]


def assistant(*parts, **fields):
    return {"role": "assistant", "content": list(parts), "model": "openai:m", **fields}


def called(id_="c1", name="sky", **arguments):
    return {"type": "tool_call", "id": id_, "name": name, "arguments": arguments}


def result(id_="c1", *content):
    return {"role": "tool", "call": id_, "tool": "sky", "content": list(content) or "blue"}


USER = {"role": "user", "content": "hello"}


async def test_optional_fields_are_omitted_by_default(body, server):
    assert await body() == {
        "model": "test",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    (seen,) = server.requests
    assert (seen.method, seen.path) == ("POST", "/v1/chat/completions")
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["accept-encoding"] == "identity"
    assert "authorization" not in seen.headers
    assert "cookie" not in seen.headers


async def test_the_system_prompt_comes_first(body):
    assert (await body(system="Be brief."))["messages"][0] == {"role": "system", "content": "Be brief."}


async def test_images_are_sent_with_their_text(body):
    (message,) = await messages(body, {"role": "user", "content": [{"type": "text", "text": "see"}, IMAGE]})
    assert message["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]


async def test_calls_and_results_are_sent_in_order(body):
    sent = await messages(
        body,
        USER,
        assistant({"type": "text", "text": "I look."}, called("a", n=1), called("b", n=2)),
        result("a"),
        result("b"),
    )
    assert [one["role"] for one in sent] == ["user", "assistant", "tool", "tool"]
    assert sent[1]["content"] == "I look."
    assert sent[1]["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "sky", "arguments": '{"n":1}'}},
        {"id": "b", "type": "function", "function": {"name": "sky", "arguments": '{"n":2}'}},
    ]
    assert sent[2] == {"role": "tool", "tool_call_id": "a", "content": "blue"}


async def test_images_in_results_follow_all_results(body):
    text = {"type": "text", "text": "blue"}
    sent = await messages(body, USER, assistant(called("a"), called("b")), result("a", text, IMAGE), result("b"), USER)
    assert [one["role"] for one in sent] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert sent[2]["content"] == "blue"
    assert sent[4]["content"][1]["type"] == "image_url"
    assert "sky" in sent[4]["content"][0]["text"]


async def test_images_in_the_last_result_are_sent(body):
    sent = await messages(body, USER, assistant(called("a")), result("a", IMAGE))
    assert sent[-1]["content"][1]["type"] == "image_url"


async def test_failed_and_empty_responses_are_not_sent(body):
    failed = assistant({"type": "text", "text": "x"}, stop="error", error={"code": "x"})
    sent = await messages(body, USER, failed, assistant({"type": "thinking", "text": "hm"}, stop="aborted"), USER)
    assert [one["role"] for one in sent] == ["user", "user"]


async def test_reasoning_is_sent_back_within_a_series_of_tool_calls(body):
    thinking = {"type": "thinking", "text": "hm"}
    sent = await messages(body, USER, assistant(thinking, called("a")), result("a"))
    assert sent[1]["reasoning_content"] == "hm"


async def test_reasoning_before_the_last_user_message_is_not_sent(body):
    sent = await messages(
        body, USER, assistant({"type": "thinking", "text": "hm"}, {"type": "text", "text": "x"}), USER
    )
    assert "reasoning_content" not in sent[1]


async def test_call_ids_of_other_services_are_converted(body):
    long = "toolu|" + "x" * 100
    sent = await messages(body, USER, assistant(called(long)), result(long))
    (call,) = sent[1]["tool_calls"]
    assert call["id"] == sent[2]["tool_call_id"]
    assert len(call["id"]) <= 40
    assert "|" not in call["id"]


async def test_tools_keep_their_order(body):
    sent = await body(tools=["b", "a"])
    assert [one["function"]["name"] for one in sent["tools"]] == ["b", "a"]
    assert sent["tools"][0] == {
        "type": "function",
        "function": {"name": "b", "description": "", "parameters": {"type": "object", "properties": {}}},
    }
    assert "tool_choice" not in sent


@pytest.mark.parametrize(
    ("choice", "sent"),
    [("none", "none"), ("required", "required"), ("a", {"type": "function", "function": {"name": "a"}})],
)
async def test_tool_choice_is_converted(body, choice, sent):
    assert (await body(tools=["a"], tool_choice=choice))["tool_choice"] == sent


@pytest.mark.parametrize(
    ("closed", "strict"), [({"additionalProperties": False, "required": ["a"]}, True), ({"required": ["a"]}, False)]
)
async def test_schema_is_strict_if_the_service_can_enforce_it(body, closed, strict):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, **closed}
    sent = (await body(output_schema=schema))["response_format"]
    assert sent == {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": strict}}


async def test_limits_use_the_common_field_names(body):
    sent = await body(max_tokens=7, temperature=0.5, stop=("END",), thinking="low", cache_key="k")
    given = {name: sent.get(name) for name in ("max_tokens", "temperature", "stop", "reasoning_effort")}
    assert given == {"max_tokens": 7, "temperature": 0.5, "stop": ["END"], "reasoning_effort": "low"}
    assert "prompt_cache_key" not in sent


async def test_disabled_thinking_is_sent_as_effort_none(body):
    assert (await body(thinking="off"))["reasoning_effort"] == "none"


async def test_options_override_other_fields(body):
    sent = await body(temperature=0.5, options={"temperature": 1, "top_k": 3})
    assert (sent["temperature"], sent["top_k"]) == (1, 3)


async def test_unpaired_surrogates_are_replaced(body):
    assert (await body(messages=[{"role": "user", "content": "a\ud83d"}]))["messages"][0][
        "content"
    ] == "a\N{REPLACEMENT CHARACTER}"
