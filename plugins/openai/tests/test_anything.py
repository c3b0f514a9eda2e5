"""Any data from a server gives a response or an error of this package, never another exception."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.messages import parse_message, to_data
from sideband.providers import ModelRequest, ToolSchema
from sideband_model_client import ServerSentEvent
from sideband_openai._chat_stream import ChatReader
from sideband_openai._response import Malformed, ReportedError
from sideband_openai._responses_stream import ResponsesReader

REQUEST = ModelRequest(
    model="m", messages=[{"role": "user", "content": "hello"}], tools=[ToolSchema(name="sky"), ToolSchema(name="sea")]
)
NAMES = [
    *("choices", "delta", "message", "index", "content", "tool_calls", "function", "name", "arguments", "id"),
    *("finish_reason", "usage", "prompt_tokens", "prompt_tokens_details", "cached_tokens", "reasoning_content"),
    *("type", "response", "output", "item", "status", "summary", "encrypted_content", "output_index", "error", "code"),
    *("text", "thinking", "refusal", "object", "call_id", "input_tokens", "completion_tokens"),
]
WORDS = [
    *("stop", "tool_calls", "length", "error", "completed", "incomplete", "failed", "function_call", "reasoning"),
    *("message", "sky", "{}", '{"a": 1}', "thinking", "response.completed", "response.output_item.added"),
    *("response.output_item.done", "response.output_text.delta", "response.function_call_arguments.delta", "\ud83d"),
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)
DELTAS = st.fixed_dictionaries({}, optional=dict.fromkeys(("content", "tool_calls", "reasoning", "refusal"), VALUES))
CHOICES = st.fixed_dictionaries({"delta": DELTAS | VALUES}, optional={"finish_reason": VALUES, "index": VALUES})
CHUNKS = st.fixed_dictionaries({"choices": st.lists(CHOICES, max_size=2)}, optional={"usage": VALUES, "error": VALUES})
RESPONSES = st.fixed_dictionaries(
    {"status": st.sampled_from(["completed", "incomplete", "failed"])},
    optional={"output": st.lists(VALUES, max_size=3), "usage": VALUES, "incomplete_details": VALUES},
)
ENDS = RESPONSES.map(lambda response: {"type": "response.completed", "response": response})
EVENTS = st.lists(CHUNKS | ENDS | VALUES, max_size=4)


@pytest.mark.parametrize("reader", [ChatReader, ResponsesReader])
def test_any_events_give_a_response_or_an_error_of_this_package(reader):
    @given(EVENTS, st.sampled_from(["message", "error", "response.completed"]))
    def check(events, kind):
        one = reader(REQUEST, read_text=True)
        with suppress(ReportedError, Malformed):
            for data in events:
                for part in one.feed(ServerSentEvent(kind, json.dumps(data))):
                    part.model_dump_json()
            message = one.message()
            assert parse_message(json.loads(json.dumps(to_data(message)))) == message

    check()


@pytest.mark.parametrize("reader", [ChatReader, ResponsesReader])
def test_any_text_as_event_data_raises_only_errors_of_this_package(reader):
    @given(st.text(max_size=20).filter(lambda text: text.strip() != "[DONE]"))
    def check(text):
        with suppress(ReportedError, Malformed):
            list(reader(REQUEST).feed(ServerSentEvent("message", text)))

    check()
