import base64

import pytest
from sideband.messages import (
    AssistantMessage,
    ImagePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultMessage,
    UserMessage,
)
from sideband.providers import ProviderRefused, ToolSchema

pytestmark = pytest.mark.anyio

HELLO = UserMessage(content="hello")
ECHO = ToolSchema(name="echo", description="Say it again.", parameters={"type": "object", "properties": {}})
OTHER = ToolSchema(name="other")
CACHED = {"type": "ephemeral"}


@pytest.fixture
def server(shared_server):
    return shared_server


@pytest.fixture
def host(shared_host):
    return shared_host


@pytest.fixture
def sent(host, server, listen, say):
    """Return a function that sends a model request and returns the request body."""

    async def ask(*messages, **fields):
        server.reply(say.start(), *say.text(0, "ok"), *say.end())
        await listen(host, *messages, **fields)
        return server.bodies[-1]

    return ask


@pytest.fixture
def turns_of(sent):
    """Return a function that sends a model request and returns its messages without cache breakpoints."""

    async def ask(*messages, **fields):
        body = await sent(*messages, **fields)
        return [
            (turn["role"], [{k: v for k, v in block.items() if k != "cache_control"} for block in turn["content"]])
            for turn in body["messages"]
        ]

    return ask


def text(words):
    return {"type": "text", "text": words}


def calls(*ids, model="anthropic:claude-haiku-4-5", thought=None):
    parts = [ToolCallPart(id=one, name="echo", arguments={"n": 1}) for one in ids]
    return AssistantMessage(content=(*([thought] if thought else []), *parts), model=model, stop="tool_calls")


def result(call, content="done", **fields):
    return ToolResultMessage(call=call, tool="echo", content=content, **fields)


async def test_request_has_the_required_fields(sent, server):
    body = await sent(system="Be brief.", tools=(ECHO,))
    assert (server.requests[-1].method, server.requests[-1].path) == ("POST", "/v1/messages")
    assert server.requests[-1].headers["anthropic-version"] == "2023-06-01"
    assert body["model"] == "claude-haiku-4-5"
    assert body["stream"] is True
    assert body["max_tokens"] == 32_000
    assert body["system"] == [{**text("Be brief."), "cache_control": CACHED}]
    assert body["tools"] == [
        {
            "name": "echo",
            "description": "Say it again.",
            "input_schema": {"type": "object", "properties": {}},
            "cache_control": CACHED,
        }
    ]
    assert body["tool_choice"] == {"type": "auto"}


async def test_optional_fields_are_omitted_by_default(sent):
    body = await sent()
    assert set(body) == {"model", "max_tokens", "stream", "messages"}


async def test_cache_breakpoints_are_on_tools_system_and_last_two_user_messages(sent):
    talk = [HELLO, AssistantMessage(content="hi"), UserMessage(content="more"), AssistantMessage(content="yes"), HELLO]
    body = await sent(*talk, system="Be brief.", tools=(ECHO, OTHER))
    assert [("cache_control" in tool) for tool in body["tools"]] == [False, True]
    marked = ["cache_control" in turn["content"][-1] for turn in body["messages"]]
    assert marked == [False, False, True, False, True]


async def test_cache_setting_disables_breakpoints(open_host, server, listen, say):
    server.reply(say.start(), *say.text(0, "ok"), *say.end())
    async with open_host(base_url=server.origin, cache=False) as host:
        await listen(host, HELLO, system="Be brief.", tools=(ECHO,))
    assert "cache_control" not in str(server.bodies)


async def test_longer_conversation_keeps_the_prefix(turns_of):
    first = await turns_of(HELLO, calls("a"), result("a"))
    second = await turns_of(HELLO, calls("a"), result("a"), AssistantMessage(content="so"), HELLO)
    assert second[: len(first)] == first


async def test_results_of_a_batch_are_one_message_in_call_order(turns_of):
    turns = await turns_of(
        HELLO, calls("a", "b"), result("a", "1"), result("b", "2", is_error=True), UserMessage(content="go")
    )
    assert [role for role, _ in turns] == ["user", "assistant", "user"]
    assert turns[2][1] == [
        {"type": "tool_result", "tool_use_id": "a", "content": [text("1")]},
        {"type": "tool_result", "tool_use_id": "b", "content": [text("2")], "is_error": True},
        text("go"),
    ]
    assert turns[1][1][0] == {"type": "tool_use", "id": "a", "name": "echo", "input": {"n": 1}}


async def test_results_come_before_other_content(turns_of):
    turns = await turns_of(HELLO, calls("a"), UserMessage(content="wait"), result("a"))
    assert [block["type"] for block in turns[2][1]] == ["tool_result", "text"]


async def test_consecutive_messages_of_a_role_are_joined(turns_of):
    turns = await turns_of(
        HELLO, UserMessage(content="again"), AssistantMessage(content="a"), AssistantMessage(content="b"), HELLO
    )
    assert turns == [
        ("user", [text("hello"), text("again")]),
        ("assistant", [text("a"), text("b")]),
        ("user", [text("hello")]),
    ]


@pytest.mark.parametrize("empty", ["", "  \n"])
async def test_empty_text_is_not_sent(turns_of, empty):
    talk = [UserMessage(content=(TextPart(text=empty), TextPart(text="x"))), AssistantMessage(content=empty), HELLO]
    assert await turns_of(*talk) == [("user", [text("x"), text("hello")])]
    turns = await turns_of(HELLO, calls("a"), result("a", empty, is_error=True))
    assert turns[2][1][0]["content"] == [text("(no output)")]


async def test_empty_system_prompt_and_description_are_omitted(sent):
    body = await sent(system=" ", tools=(OTHER,))
    assert "system" not in body
    assert "description" not in body["tools"][0]


async def test_conversation_begins_with_a_user_message(turns_of):
    turns = await turns_of(AssistantMessage(content="so"), HELLO)
    assert [role for role, _ in turns] == ["user", "assistant", "user"]


async def test_failed_responses_are_not_sent(turns_of):
    failed = AssistantMessage(content="half", stop="error", error={"code": "x"})
    assert await turns_of(HELLO, failed) == [("user", [text("hello")])]


async def test_images_from_users_and_tools_are_sent(turns_of):
    data = base64.b64encode(b"png").decode()
    image = ImagePart(media_type="image/png", data=data)
    turns = await turns_of(UserMessage(content=(image,)), calls("a"), result("a", (image,)))
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    assert turns[0][1] == [block]
    assert turns[2][1][0]["content"] == [block]


async def test_call_ids_of_other_providers_are_converted(turns_of):
    strange, long = "call:1|fc.2", "x" * 200
    turns = await turns_of(HELLO, calls(strange, long), result(strange), result(long))
    call_ids = [block["id"] for block in turns[1][1]]
    result_ids = [block["tool_use_id"] for block in turns[2][1]]
    assert call_ids == result_ids
    assert all(len(one) <= 64 and one.replace("_", "").isalnum() for one in call_ids)


async def test_thinking_is_returned_unchanged_to_the_model_it_came_from(turns_of):
    thoughts = (ThinkingPart(text="hm ", signature="c2ln"), ThinkingPart(signature="ZW5j", redacted=True))
    answer = AssistantMessage(content=(*thoughts, TextPart(text="yes")), model="anthropic:claude-haiku-4-5")
    turns = await turns_of(HELLO, answer, HELLO)
    assert turns[1][1] == [
        {"type": "thinking", "thinking": "hm ", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZW5j"},
        text("yes"),
    ]


@pytest.mark.parametrize(
    ("model", "signature"), [("anthropic:claude-opus-5", "c2ln"), ("openai:gpt", "c2ln"), ("", None)]
)
async def test_unsigned_thinking_and_thinking_of_other_models_is_not_sent(turns_of, model, signature):
    thought = ThinkingPart(text="hm", signature=signature)
    turns = await turns_of(HELLO, AssistantMessage(content=(thought, TextPart(text="yes")), model=model), HELLO)
    assert turns[1][1] == [text("yes")]


REFUSAL = "messages.1.content.0: Invalid `signature` in `thinking` block"


async def test_request_is_repeated_without_rejected_thinking(host, server, listen, say):
    answer = AssistantMessage(content=(ThinkingPart(text="hm", signature="bad"), TextPart(text="yes")))
    server.refuse(400, {"type": "invalid_request_error", "message": REFUSAL})
    server.reply(say.start(), *say.text(0, "on we go"), *say.end())
    _, message = await listen(host, HELLO, answer, HELLO)
    assert message.text == "on we go"
    assert [len(body["messages"][1]["content"]) for body in server.bodies] == [2, 1]


async def test_request_without_thinking_is_not_repeated(host, server, listen):
    server.refuse(400, {"type": "invalid_request_error", "message": REFUSAL})
    with pytest.raises(ProviderRefused, match="signature"):
        await listen(host, HELLO)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("model", "level", "thinking", "effort"),
    [
        ("claude-haiku-4-5", None, None, None),
        ("claude-haiku-4-5", "off", None, None),
        ("claude-haiku-4-5-20251001", "low", {"type": "enabled", "budget_tokens": 4_096}, None),
        ("claude-haiku-4-5", "high", {"type": "enabled", "budget_tokens": 16_000}, None),
        ("claude-opus-4-6", None, None, None),
        ("claude-opus-4-6", "off", None, None),
        ("claude-opus-4-6", "medium", {"type": "adaptive", "display": "summarized"}, "medium"),
        ("claude-opus-5", None, {"type": "adaptive", "display": "summarized"}, None),
        ("claude-opus-5", "off", {"type": "disabled"}, None),
        ("claude-opus-5-5", "off", {"type": "adaptive", "display": "summarized"}, "low"),
        ("claude-opus-5-5", "high", {"type": "adaptive", "display": "summarized"}, "high"),
        ("claude-fable-9", "high", {"type": "adaptive", "display": "summarized"}, "high"),
        ("vendor/kimi", "low", {"type": "enabled", "budget_tokens": 4_096}, None),
    ],
)
async def test_thinking_level_is_sent_in_the_form_of_the_model(sent, *, model, level, thinking, effort):
    body = await sent(model=model, thinking=level)
    assert body.get("thinking") == thinking
    assert body.get("output_config", {}).get("effort") == effort


async def test_thinking_budget_is_at_most_half_of_max_tokens(sent):
    assert (await sent(thinking="high", max_tokens=5_000))["thinking"]["budget_tokens"] == 2_500
    assert "thinking" not in await sent(thinking="high", max_tokens=2_000)


async def test_thinking_is_not_enabled_within_a_series_of_tool_calls(sent):
    assert "thinking" not in await sent(HELLO, calls("a"), result("a"), thinking="low")
    thought = ThinkingPart(text="hm", signature="c2ln")
    assert "thinking" in await sent(HELLO, calls("a", thought=thought), result("a"), thinking="low")


@pytest.mark.parametrize(
    ("model", "thinking", "temperature"),
    [
        ("claude-haiku-4-5", None, 0.5),
        ("claude-haiku-4-5", "low", None),
        ("claude-opus-5", "off", None),
        ("claude-opus-5-5", None, None),
        ("vendor/kimi", None, 0.5),
    ],
)
async def test_temperature_is_sent_only_if_the_model_accepts_it(sent, *, model, thinking, temperature):
    body = await sent(model=model, thinking=thinking, temperature=0.5)
    assert body.get("temperature") == temperature


async def test_temperature_is_at_most_one(sent):
    assert (await sent(temperature=1.8))["temperature"] == 1.0


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        ("echo", {"type": "tool", "name": "echo"}),
    ],
)
async def test_tool_choice_is_converted(sent, choice, expected):
    assert (await sent(tools=(ECHO,), tool_choice=choice))["tool_choice"] == expected


async def test_tool_choice_is_omitted_without_tools(sent):
    assert "tool_choice" not in await sent(tool_choice="none")


@pytest.mark.parametrize(("model", "thinking"), [("claude-haiku-4-5", None), ("claude-opus-5", {"type": "disabled"})])
async def test_forced_tool_disables_thinking(sent, model, thinking):
    body = await sent(model=model, tools=(ECHO,), tool_choice="required", thinking="high")
    assert body["tool_choice"] == {"type": "any"}
    assert body.get("thinking") == thinking


@pytest.mark.parametrize(("choice", "words"), [("required", "tool call"), ("echo", "`echo`")])
async def test_prompt_asks_for_the_call_if_forced_tools_are_not_supported(sent, choice, words):
    body = await sent(model="claude-opus-5-5", tools=(ECHO,), tool_choice=choice)
    assert body["tool_choice"] == {"type": "auto"}
    assert words in body["messages"][-1]["content"][-1]["text"]


async def test_objects_in_the_output_schema_are_closed(sent):
    inner = {"type": "object", "properties": {"n": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"a": inner, "b": {"type": "array", "items": inner}}}
    wanted = (await sent(output_schema=schema))["output_config"]["format"]
    closed = {**inner, "additionalProperties": False}
    assert wanted["type"] == "json_schema"
    assert wanted["schema"]["additionalProperties"] is False
    assert wanted["schema"]["properties"] == {"a": closed, "b": {"type": "array", "items": closed}}


async def test_property_named_like_a_keyword_is_not_closed(sent):
    schema = {"type": "object", "properties": {"type": {"type": "string"}}}
    wanted = (await sent(output_schema=schema))["output_config"]["format"]["schema"]
    assert wanted["properties"] == {"type": {"type": "string"}}


async def test_max_tokens_is_limited_by_the_model(sent):
    assert (await sent(max_tokens=100))["max_tokens"] == 100
    assert (await sent(max_tokens=1_000_000))["max_tokens"] == 64_000
    assert (await sent(model="vendor/kimi"))["max_tokens"] == 8_192


async def test_blank_stop_sequences_are_omitted(sent):
    assert (await sent(stop=("END", " ")))["stop_sequences"] == ["END"]


async def test_options_override_all_fields_except_stream(sent):
    options = {"top_k": 3, "max_tokens": 7, "output_config": {"effort": "max"}, "stream": False}
    body = await sent(options=options, output_schema={"type": "object"})
    assert (body["top_k"], body["max_tokens"], body["stream"]) == (3, 7, True)
    assert set(body["output_config"]) == {"format", "effort"}


async def test_betas_version_and_headers_are_sent(open_host, server, listen, say):
    server.reply(say.start(), *say.text(0, "ok"), *say.end())
    config = {"betas": ["one-2026", "two-2026"], "version": "2099-01-01", "headers": {"X-Team": "red"}}
    async with open_host(base_url=server.origin, **config) as host:
        await listen(host)
    headers = server.requests[-1].headers
    assert headers["anthropic-beta"] == "one-2026,two-2026"
    assert headers["anthropic-version"] == "2099-01-01"
    assert headers["x-team"] == "red"
