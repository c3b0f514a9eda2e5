"""Messages: one form for all providers, with lossless serialization."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.messages import (
    AssistantMessage,
    ImagePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultMessage,
    Usage,
    UserMessage,
    parse_message,
    parse_messages,
    to_data,
)

texts = st.text(max_size=20)
counts = st.integers(0, 10**9)
usages = st.builds(
    Usage, input=counts, output=counts, cache_read=counts, cache_write=counts, cost=st.none() | st.floats(0, 100)
)
input_parts = st.builds(TextPart, text=texts) | st.builds(ImagePart, media_type=st.just("image/png"), data=texts)
answer_parts = (
    st.builds(TextPart, text=texts)
    | st.builds(ThinkingPart, text=texts, signature=st.none() | texts)
    | st.builds(
        ToolCallPart,
        id=st.text(min_size=1, max_size=5),
        name=texts,
        arguments=st.dictionaries(texts, st.none() | st.booleans() | st.integers() | texts, max_size=3),
    )
)
messages = (
    st.builds(UserMessage, content=st.lists(input_parts, max_size=3).map(tuple), source=texts)
    | st.builds(AssistantMessage, content=st.lists(answer_parts, max_size=3).map(tuple), usage=usages)
    | st.builds(
        ToolResultMessage,
        call=texts,
        tool=texts,
        content=st.lists(input_parts, max_size=3).map(tuple),
        is_error=st.booleans(),
        metadata=st.dictionaries(texts, texts, max_size=2),
    )
)


@given(messages)
def test_message_round_trips_through_data(message):
    assert parse_message(json.loads(json.dumps(to_data(message)))) == message


def test_plain_text_becomes_one_part():
    assert UserMessage(content="hello").content == (TextPart(text="hello"),)
    assert parse_messages([{"role": "assistant", "content": "hi"}])[0].text == "hi"


@pytest.mark.parametrize(
    "data",
    [
        {"role": "wizard", "content": "hi"},
        {"content": "hi"},
        {"role": "user", "content": [{"type": "tool_call", "id": "1", "name": "x"}]},
        {"role": "user", "content": "hi", "extra": 1},
        {"role": "assistant", "content": [{"type": "tool_call", "id": "", "name": "x"}]},
        {"role": "assistant", "content": "", "usage": {"input": -1}},
        {"role": "user", "content": [{"type": "image", "media_type": "text/html", "data": ""}]},
    ],
)
def test_invalid_message_is_rejected(data):
    with pytest.raises(ValueError, match="validation error"):
        parse_message(data)


def test_costs_add_up_and_unknown_cost_stays_unknown():
    assert (Usage(cost=1.5) + Usage(cost=2)).cost == 3.5
    assert (Usage(cost=1.5) + Usage()).cost == 1.5
    assert (Usage() + Usage()).cost is None


def test_context_includes_input_output_and_cache_tokens():
    assert Usage(input=1, output=2, cache_read=4, cache_write=8, reasoning=2).context == 15
