import json

import pytest
from sideband.messages import TextPart, ThinkingPart, Usage
from sideband.providers import ModelRequest, ProviderRefused, StreamBroken, TextDelta, ThinkingDelta, ToolCallDelta
from sideband_openai._chat_request import chat_body
from sideband_openai._responses_request import responses_body

pytestmark = pytest.mark.anyio

IMAGE = {"type": "image", "media_type": "image/png", "data": "AAAA"}
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 60},
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 20},
}
TEXT = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "sky", "arguments": '{"n": 1}'}
THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "sealed",
    "status": None,
}


def ended(*output, kind="response.completed", **fields):
    status = kind.removeprefix("response.")
    return {"type": kind, "response": {"status": status, "output": list(output), "usage": USAGE, **fields}}


@pytest.fixture(scope="module")
def shared_config():
    return {"api": "responses"}


@pytest.fixture
def server(shared_server):
    return shared_server


@pytest.fixture
def client(shared_client):
    return shared_client


@pytest.fixture
def answer(client, server, make):
    async def call(*events, **fields):
        server.reply(make.events(*events, done=False))
        return await client.ask(**fields)

    return call


def body(*messages, official=True, summaries=None, **fields):
    request = ModelRequest(model=fields.pop("model", "m"), messages=messages, **fields)
    return json.loads(bytes(responses_body(request, "openai", official=official, summaries=summaries)))


def assistant(*parts, **fields):
    return {"role": "assistant", "content": list(parts), "model": "openai:m", **fields}


USER = {"role": "user", "content": "hello"}


async def test_text_is_streamed_and_joined_in_the_message(client, server, make):
    events = [
        {"type": "response.created", "response": {"status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}},
        {"type": "response.output_text.delta", "delta": "Hel"},
        {"type": "response.of_a_later_time", "x": 1},
        {"type": "response.output_text.delta", "delta": "lo"},
        ended(TEXT),
    ]
    server.reply(make.events(*events, done=False))
    *deltas, finished = await client.events()
    assert deltas == [TextDelta(text="Hel"), TextDelta(text="lo")]
    message = finished.message
    assert (message.content, message.stop) == ((TextPart(text="Hello"),), "end")
    assert message.usage == Usage(input=40, cache_read=60, output=30, reasoning=20)
    assert server.requests[-1].path == "/v1/responses"


async def test_calls_and_reasoning_are_streamed(client, server, make):
    events = [
        {"type": "response.reasoning_summary_text.delta", "delta": "hm"},
        {"type": "response.output_item.added", "output_index": 1, "item": {**CALL, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"n"'},
        {"type": "response.function_call_arguments.delta", "output_index": 9, "delta": "unknown index"},
        ended(THOUGHT, CALL),
    ]
    server.reply(make.events(*events, done=False))
    *deltas, finished = await client.events()
    assert deltas == [
        ThinkingDelta(text="hm"),
        ToolCallDelta(index=0, name="sky"),
        ToolCallDelta(index=0, arguments='{"n"'),
    ]
    thought, call = finished.message.content
    assert (thought.text, thought.redacted) == ("hm", False)
    assert (call.id, call.name, call.arguments) == ("c1", "sky", {"n": 1})
    assert finished.message.stop == "tool_calls"


async def test_reasoning_is_sent_back_unchanged(answer):
    message = await answer(ended(THOUGHT, TEXT))
    sent = body(USER, {**message.model_dump(mode="json"), "model": "openai:m"}, USER)["input"]
    assert sent[1] == {key: value for key, value in THOUGHT.items() if key != "status"}
    assert sent[2]["content"][0]["text"] == "Hello"


async def test_reasoning_is_not_sent_to_another_model(answer):
    message = await answer(ended(THOUGHT, TEXT))
    sent = body(USER, {**message.model_dump(mode="json"), "model": "openai:another"})["input"]
    assert [one["type"] for one in sent] == ["message", "message"]


@pytest.mark.parametrize("signature", [None, "opaque", "[]", '{"type": "other"}', '{"type": "reasoning"}'])
def test_foreign_signatures_are_not_sent(signature):
    thinking = {"type": "thinking", "text": "hm", "signature": signature}
    sent = body(assistant(thinking, {"type": "text", "text": "x"}))["input"]
    assert [one["type"] for one in sent] == ["message"]


def test_trailing_reasoning_is_not_sent():
    signature = json.dumps(THOUGHT)
    parts = [{"type": "text", "text": "x"}, {"type": "thinking", "text": "hm", "signature": signature}]
    assert [one["type"] for one in body(assistant(*parts))["input"]] == ["message"]


async def test_reasoning_without_text_is_redacted(answer):
    message = await answer(ended({**THOUGHT, "summary": []}, TEXT))
    assert (message.content[0].redacted, message.content[0].text) == (True, "")


async def test_unencrypted_reasoning_has_no_signature(answer):
    message = await answer(ended({"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]}, TEXT))
    assert message.content[0] == ThinkingPart(text="hm")


async def test_streamed_items_replace_an_empty_output(answer):
    done = [{"type": "response.output_item.done", "item": item} for item in (THOUGHT, CALL)]
    message = await answer(*done, ended())
    assert [part.type for part in message.content] == ["thinking", "tool_call"]


@pytest.mark.parametrize(("reason", "stop"), [("max_output_tokens", "length"), ("content_filter", "refusal")])
async def test_reason_of_an_incomplete_response_is_converted(answer, reason, stop):
    message = await answer(ended(TEXT, kind="response.incomplete", incomplete_details={"reason": reason}))
    assert (message.text, message.stop) == ("Hello", stop)


async def test_call_in_an_incomplete_response_has_a_problem(answer):
    cut = {**CALL, "arguments": "", "status": "incomplete"}
    message = await answer(ended(cut, kind="response.incomplete"))
    assert "cut off" in message.tool_calls[0].problem


async def test_refusal_is_text_with_stop_reason_refusal(answer):
    refusal = {"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}
    message = await answer({"type": "response.refusal.delta", "delta": "I will not."}, ended(refusal))
    assert (message.text, message.stop) == ("I will not.", "refusal")


async def test_invalid_arguments_are_a_problem_of_the_call(answer):
    message = await answer(ended({**CALL, "arguments": "[1]"}))
    assert "invalid arguments" in message.tool_calls[0].problem


async def test_response_without_its_last_event_is_broken(answer):
    with pytest.raises(StreamBroken, match="before the response was complete"):
        await answer({"type": "response.output_item.done", "item": TEXT})


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.completed"},
        {"type": "response.completed", "response": {"status": "in_progress", "output": [TEXT]}},
        {"type": "response.completed", "response": {"status": "completed", "output": [7]}},
        {"type": "response.completed", "response": {"status": "completed", "output": 7}},
        {"type": "response.completed", "response": {"status": ["completed"], "output": [TEXT]}},
        "{",
    ],
    ids=str,
)
async def test_invalid_event_is_malformed(answer, event):
    with pytest.raises(StreamBroken):
        await answer(event)


@pytest.mark.parametrize(
    ("event", "status"),
    [
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow down"}, 429),
        ({"type": "error", "error": {"type": "server_error", "message": "slow down"}}, 500),
        (ended(kind="response.failed", error={"code": "server_error", "message": "slow down"}), 500),
        ({"error": {"message": "slow down", "code": 503}}, 503),
    ],
    ids=str,
)
async def test_error_in_the_stream_implies_a_status(answer, event, status):
    with pytest.raises(ProviderRefused, match="slow down") as caught:
        await answer(event)
    assert caught.value.status == status


async def test_response_that_is_not_streamed_is_read(client, server):
    server.reply({"object": "response", **ended(TEXT)["response"]}, kind="application/json")
    assert (await client.ask()).text == "Hello"


async def test_call_in_text_of_an_offered_tool_is_recognized(answer):
    text = {"type": "output_text", "text": '<tool_call>{"name": "sky"}</tool_call>'}
    message = await answer(ended({"type": "message", "content": [text]}), tools=["sky"])
    assert (message.tool_calls[0].name, message.text, message.stop) == ("sky", "", "tool_calls")


def test_optional_fields_are_omitted_by_default():
    content = [{"type": "input_text", "text": "hello"}]
    message = {"type": "message", "role": "user", "content": content}
    assert body(USER) == {"model": "m", "input": [message], "stream": True, "store": False}


def test_every_field_of_a_request_is_sent():
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    tool = {"name": "sky", "description": "Look up."}
    sent = body(
        USER,
        system="Be brief.",
        tools=[tool],
        tool_choice="sky",
        output_schema=schema,
        max_tokens=7,
        temperature=0.5,
        thinking="low",
        cache_key="k",
        summaries="auto",
        options={"service_tier": "flex"},
    )
    del sent["input"], sent["model"], sent["stream"], sent["store"]
    parameters = {"type": "object", "properties": {}}
    assert sent == {
        "instructions": "Be brief.",
        "tools": [{"type": "function", **tool, "parameters": parameters, "strict": False}],
        "tool_choice": {"type": "function", "name": "sky"},
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}},
        "max_output_tokens": 7,
        "temperature": 0.5,
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "k",
        "service_tier": "flex",
    }


def test_calls_and_results_are_sent_in_order():
    call = {"type": "tool_call", "id": "c1", "name": "sky", "arguments": {"n": 1}}
    result = {"role": "tool", "call": "c1", "tool": "sky", "content": [{"type": "text", "text": "blue"}, IMAGE]}
    sent = body(USER, assistant(call), result)["input"]
    assert sent[1:] == [
        {"type": "function_call", "call_id": "c1", "name": "sky", "arguments": '{"n":1}'},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [
                {"type": "input_text", "text": "blue"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"},
            ],
        },
    ]


def test_text_result_is_sent_as_a_string():
    result = {"role": "tool", "call": "c1", "tool": "sky", "content": "blue"}
    assert body(result)["input"][0]["output"] == "blue"


@pytest.mark.parametrize(
    ("model", "thinking", "effort"),
    [
        ("gpt-5", "off", "minimal"),
        ("gpt-5.1", "off", "none"),
        ("o3-2025-04-16", "off", "low"),
        ("gpt-5", "high", "high"),
        ("gpt-5", None, None),
        ("gpt-4o", "high", None),
        ("gpt-9", "off", "none"),
        ("gpt-9", None, None),
    ],
)
def test_reasoning_effort_depends_on_the_model(model, thinking, effort):
    sent = body(USER, model=model, thinking=thinking)
    assert sent.get("reasoning", {}).get("effort") == effort
    assert ("include" in sent) == (model != "gpt-4o" and (thinking is not None or model == "gpt-5"))
    request = ModelRequest(model=model, messages=[USER], thinking=thinking)
    assert json.loads(bytes(chat_body(request, "openai", official=True))).get("reasoning_effort") == effort


def test_official_service_gets_its_own_fields():
    request = ModelRequest(model="gpt-4o", messages=[USER], max_tokens=7, cache_key="k")
    sent = json.loads(bytes(chat_body(request, "openai", official=True)))
    assert (sent["max_completion_tokens"], sent["prompt_cache_key"]) == (7, "k")
    assert "max_tokens" not in sent
    assert "prompt_cache_key" not in body(USER, official=False, cache_key="k")


def test_official_service_gets_no_reasoning_in_chat():
    call = {"type": "tool_call", "id": "c1", "name": "sky"}
    request = ModelRequest(model="gpt-4o", messages=[USER, assistant({"type": "thinking", "text": "hm"}, call)])
    assert "reasoning_content" not in json.loads(bytes(chat_body(request, "openai", official=True)))["messages"][1]
