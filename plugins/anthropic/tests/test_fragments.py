"""Turns that their first message keeps: a body of kept turns equals one that is built again, and is checked."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sideband.messages import (
    AssistantMessage,
    CarryingTuple,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultMessage,
    UserMessage,
    parse_message,
    to_data,
)
from sideband.ops import EgressRefused
from sideband.providers import ModelRequest, ToolSchema
from sideband_anthropic._known_models import known_model
from sideband_anthropic._request import request_body

pytestmark = pytest.mark.anyio

VALUE = "s3cr3t-canary-7f3a"
TEXT = st.sampled_from(["", "hello", "a\ud83d", "\u00e4\n"])
PART = st.one_of(
    st.builds(TextPart, text=TEXT),
    st.builds(ToolCallPart, id=st.sampled_from(["c1", "c 2"]), name=st.just("sky")),
    st.builds(ThinkingPart, text=TEXT, signature=st.sampled_from([None, "s"])),
)
MESSAGES = st.lists(
    st.one_of(
        st.builds(UserMessage, content=TEXT),
        st.builds(
            AssistantMessage,
            content=st.lists(PART, max_size=3).map(tuple),
            model=st.sampled_from(["", "other:m", "anthropic:claude-haiku-4-5"]),
            stop=st.sampled_from(["end", "error"]),
        ),
        st.builds(ToolResultMessage, call=st.just("c1"), tool=st.just("sky"), content=TEXT),
    ),
    max_size=8,
)
FORCED = {"tools": (ToolSchema(name="sky"),), "tool_choice": "sky"}


def body_of(messages, *, model="claude-haiku-4-5", cache=True, thoughts=True, **fields):
    request = ModelRequest.model_construct(**{"model": model, "messages": tuple(messages), **fields})
    found = request_body(request, known_model(model), provider="anthropic", cache=cache, thoughts=thoughts)
    return bytes(found)


UNFORCED = "claude-opus-5-5"
HOW = list(product([True, False], [True, False], ["claude-haiku-4-5", UNFORCED], [True, False]))


@settings(max_examples=40, deadline=None)
@given(MESSAGES)
def test_a_body_of_kept_turns_equals_one_that_is_built_again(messages):
    slices = [messages[start:end] for end in range(len(messages) + 1) for start in (0, end // 2)]
    for cache, thoughts, model, forced in (*HOW, *HOW):
        for some in slices:
            fields = {"cache": cache, "thoughts": thoughts, "model": model, **(FORCED if forced else {})}
            again = [parse_message(to_data(one)) for one in some]
            assert body_of(some, **fields) == body_of(again, **fields)


def test_thoughts_of_one_model_are_left_out_for_another_though_they_were_sent_before():
    content = (ThinkingPart(text="hm", signature="s1gn4ture"), TextPart(text="ok"))
    messages = UserMessage(content="hi"), AssistantMessage(content=content, model="anthropic:claude-haiku-4-5")
    assert b"s1gn4ture" in body_of(messages)
    assert b"s1gn4ture" not in body_of(messages, model=UNFORCED)


def test_turns_that_were_sent_before_are_not_built_again(count_calls):
    def calls(size):
        messages = [one for number in range(size // 2) for one in exchange(number)]
        body_of(messages)
        body_of([*messages, *exchange(size)])
        return count_calls(lambda: body_of([*messages, *exchange(size)]))

    per_message = (calls(1_000) - calls(100)) / 900
    assert per_message <= 6.5, "let messages keep their turns, and do not walk through the parts of messages"


def tools_of(size):
    return CarryingTuple([ToolSchema(name=f"t{number}") for number in range(size)])


def test_tools_of_an_agent_are_looked_up_together(count_calls):
    def calls(size):
        tools = tools_of(size)
        body_of(exchange(0), tools=tools)
        return count_calls(lambda: body_of(exchange(0), tools=tools))

    assert calls(2_000) == calls(20), "let the tuple keep the fragments of its tools"


def test_tools_of_an_agent_are_sent_as_other_tools_are_with_and_without_a_cache():
    tools = tools_of(3)
    for cache in (True, False, True, False):
        again = body_of(exchange(0), tools=tuple(tools_of(3)), cache=cache)
        assert body_of(exchange(0), tools=tools, cache=cache) == again
        assert again.count(b"ephemeral") == (2 if cache else 0)


def exchange(number):
    return UserMessage(content=f"question {number}"), AssistantMessage(content=f"answer {number}")


async def test_a_secret_that_becomes_known_between_two_requests_is_not_sent_again(host, server, listen, say):
    for _ in range(2):
        server.reply(say.start(), *say.text(0, "ok"), *say.end())
    messages = (UserMessage(content=f"my token is {VALUE}"), AssistantMessage(content="ok"))
    await listen(host, *messages, UserMessage(content="go on"))
    await listen(host, *messages, UserMessage(content="go on"))
    host.redactor.protect(VALUE, "token")
    with pytest.raises(EgressRefused, match="`token`"):
        await listen(host, *messages, UserMessage(content="go on"))
    assert len(server.requests) == 2
