"""Messages that keep their form in requests: a body of kept fragments equals one that is built again and is checked."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sideband.messages import (
    AssistantMessage,
    AudioPart,
    CarryingTuple,
    FilePart,
    ImagePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultMessage,
    UserMessage,
    parse_message,
    to_data,
)
from sideband.ops import EgressRefused
from sideband.providers import ModelRequest, ProviderError, ToolSchema
from sideband_openai._chat_request import chat_body
from sideband_openai._responses_request import responses_body

pytestmark = pytest.mark.anyio

VALUE = "s3cr3t-canary-7f3a"
TEXT = st.sampled_from(["", "hello", "a\ud83d", "\u00e4\n"])
IMAGE = ImagePart(media_type="image/png", data="AAAA")
CALL = st.builds(ToolCallPart, id=st.sampled_from(["c1", "c 2"]), name=st.just("sky"))
THOUGHT = st.builds(ThinkingPart, text=TEXT)
MESSAGES = st.lists(
    st.one_of(
        st.builds(UserMessage, content=st.one_of(TEXT, st.just((TextPart(text="look"), IMAGE)))),
        st.builds(
            AssistantMessage,
            content=st.lists(st.one_of(st.builds(TextPart, text=TEXT), CALL, THOUGHT), max_size=3).map(tuple),
            stop=st.sampled_from(["end", "error"]),
        ),
        st.builds(
            ToolResultMessage,
            call=st.just("c1"),
            tool=st.just("sky"),
            content=st.one_of(TEXT, st.just((TextPart(text="seen"), IMAGE))),
        ),
    ),
    max_size=8,
)
FORMS = {
    "chat": lambda request: chat_body(request, "openai", official=False),
    "official chat": lambda request: chat_body(request, "openai", official=True),
    "responses": lambda request: responses_body(request, "openai", official=True, summaries=None),
}


def body_of(form, messages, **fields):
    request = ModelRequest.model_construct(**{"model": "m", "messages": tuple(messages), **fields})
    return bytes(FORMS[form](request))


@settings(max_examples=40, deadline=None)
@given(MESSAGES)
def test_a_body_of_kept_fragments_equals_one_that_is_built_again(messages):
    slices = [messages[start:end] for end in range(len(messages) + 1) for start in (0, end // 2)]
    for form in (*FORMS, *FORMS):
        for some in slices:
            assert body_of(form, some) == body_of(form, [parse_message(to_data(one)) for one in some])


def test_reasoning_is_left_out_of_the_next_run_though_it_was_sent_in_this_one():
    answer = AssistantMessage(content=(ThinkingPart(text="hm"), TextPart(text="ok")))
    assert b"reasoning_content" in body_of("chat", [UserMessage(content="hi"), answer])
    assert b"reasoning_content" not in body_of("chat", [UserMessage(content="hi"), answer, UserMessage(content="and?")])


def test_reasoning_of_one_model_is_left_out_for_another_though_it_was_sent_before():
    item = json.dumps({"type": "reasoning", "encrypted_content": "gAAAA"})
    answer = AssistantMessage(content=(ThinkingPart(signature=item), TextPart(text="ok")), model="openai:m")
    assert b"gAAAA" in body_of("responses", [UserMessage(content="hi"), answer])
    assert b"gAAAA" not in body_of("responses", [UserMessage(content="hi"), answer], model="other")


def test_a_file_that_one_service_takes_is_still_refused_by_another():
    archive = FilePart(media_type="application/zip", data="AAAA", name="a.zip")
    messages = [UserMessage(content=(archive,))]
    assert b"a.zip" in body_of("chat", messages)
    with pytest.raises(ProviderError, match="application/zip"):
        body_of("official chat", messages)


@pytest.mark.parametrize("form", FORMS)
def test_options_may_replace_the_messages_and_the_tools(form):
    name = "input" if form == "responses" else "messages"
    options = {name: [], "tools": [{"type": "web_search"}]}
    sent = json.loads(body_of(form, [UserMessage(content="hi")], tools=(ToolSchema(name="sky"),), options=options))
    assert (sent[name], sent["tools"]) == ([], [{"type": "web_search"}])


@pytest.mark.parametrize("form", FORMS)
def test_messages_and_tools_that_were_sent_before_are_not_built_again(form, count_calls):
    def calls(size):
        messages = [one for number in range(size // 2) for one in exchange(number)]
        tools = tuple(ToolSchema(name=f"t{number}") for number in range(20))
        body_of(form, messages, tools=tools)
        return count_calls(lambda: body_of(form, [*messages, *exchange(size)], tools=tools))

    per_message = (calls(1_000) - calls(100)) / 900
    assert per_message <= 1.1, "look the fragments up, and do not walk through the parts of messages"


def tools_of(size):
    return CarryingTuple([ToolSchema(name=f"t{number}") for number in range(size)])


@pytest.mark.parametrize("form", FORMS)
def test_tools_of_an_agent_are_looked_up_together(form, count_calls):
    def calls(size):
        tools = tools_of(size)
        body_of(form, exchange(0), tools=tools)
        return count_calls(lambda: body_of(form, exchange(0), tools=tools))

    assert calls(2_000) == calls(20), "let the tuple keep the fragments of its tools"


def test_tools_of_an_agent_are_sent_as_other_tools_are_in_each_form():
    tools = tools_of(3)
    for form in (*FORMS, *FORMS):
        assert body_of(form, exchange(0), tools=tools) == body_of(form, exchange(0), tools=tuple(tools_of(3)))


def exchange(number):
    return UserMessage(content=f"question {number}"), AssistantMessage(content=f"answer {number}")


async def test_a_secret_that_appears_only_in_the_joined_text_is_not_sent(client, server):
    (client.host.redactor).protect(VALUE, "token")
    halves = (TextPart(text=VALUE[:9]), TextPart(text=VALUE[9:]))
    messages = (UserMessage(content="hi"), AssistantMessage(content=halves), UserMessage(content="go on"))
    with pytest.raises(EgressRefused, match="`token`"):
        await client.ask(messages=messages)
    assert server.requests == []


async def test_a_secret_that_becomes_known_between_two_requests_is_not_sent_again(client, server, make):
    server.reply(make.events(make.chunk(content="x"), make.chunk(finish="stop")))
    messages = (UserMessage(content=f"my token is {VALUE}"), AssistantMessage(content="ok"))
    await client.ask(messages=messages)
    await client.ask(messages=(*messages, UserMessage(content="go on")))
    client.host.redactor.protect(VALUE, "token")
    with pytest.raises(EgressRefused, match="`token`"):
        await client.ask(messages=(*messages, UserMessage(content="go on")))
    assert len(server.requests) == 2


async def test_a_secret_in_the_description_of_a_tool_is_not_sent(client, server):
    client.host.redactor.protect(VALUE, "token")
    with pytest.raises(EgressRefused, match="`token`"):
        await client.ask(tools=(), messages=(UserMessage(content="hi"),), system=f"use {VALUE}")
    schema = ToolSchema(name="sky", description=VALUE)
    request = ModelRequest(model="m", messages=(UserMessage(content="hi"),), tools=(schema,))
    with pytest.raises(EgressRefused, match="`token`"):
        await client.ask(request)
    assert server.requests == []


def test_audio_is_refused_in_each_request_though_other_messages_are_kept():
    recording = UserMessage(content=(AudioPart(media_type="audio/wav", data="AAAA"),))
    for _ in range(2):
        with pytest.raises(ProviderError, match="audio"):
            body_of("responses", [UserMessage(content="hi"), recording])
