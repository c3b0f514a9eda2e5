"""Validity checks for histories, and strategies for random histories."""

import pytest
from hypothesis import strategies as st
from sideband.messages import AssistantMessage, TextPart, ThinkingPart, ToolCallPart, ToolResultMessage, UserMessage


@pytest.fixture
def anyio_backend():
    return "asyncio"


def _problems(messages):
    problems = []
    seen = set()
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if message.role == "tool":
            problems.append(f"message {at - 1} is a result of `{message.call}` without a preceding call")
        elif not _has_content(message):
            problems.append(f"message {at - 1} has no content")
        elif message.role == "assistant":
            ids = [call.id for call in message.tool_calls]
            problems += [f"the id `{one}` is used twice" for one in ids if one in seen or ids.count(one) > 1]
            seen.update(ids)
            if message.stop == "error":
                problems.append(f"message {at - 1} holds an error")
            results = [one.call if one.role == "tool" else None for one in messages[at : at + len(ids)]]
            if results != ids:
                problems.append(f"message {at - 1} calls {ids}, and {results} follow")
            at += len([one for one in results if one is not None])
    return problems


def _has_content(message):
    if message.role == "assistant" and message.tool_calls:
        return True
    return any(
        part.text.strip() if isinstance(part, TextPart) else not isinstance(part, ThinkingPart)
        for part in message.content
    )


@pytest.fixture(scope="session")
def history_problems():
    """Return a function that lists why a provider would reject a history; empty if it is valid."""
    return _problems


_IDS = st.sampled_from(["a", "b", "c", "a-2"])
_TEXTS = st.sampled_from(["", " ", "hello", "go on"])
_USERS = st.builds(UserMessage, content=_TEXTS, source=st.sampled_from(["user", "plugin"]))
_CALLS = st.builds(ToolCallPart, id=_IDS, name=st.just("look"), problem=st.sampled_from([None, "no JSON"]))
_PARTS = st.one_of(st.builds(TextPart, text=_TEXTS), st.builds(ThinkingPart, text=_TEXTS), _CALLS)
_ASSISTANTS = st.builds(
    AssistantMessage,
    content=st.lists(_PARTS, max_size=4).map(tuple),
    stop=st.sampled_from(["end", "tool_calls", "aborted", "error"]),
)
_RESULTS = st.builds(ToolResultMessage, call=_IDS, tool=st.just("look"), content=st.just("seen"))


@pytest.fixture(scope="session")
def damaged_histories():
    """A strategy for lists of messages with arbitrary damage."""
    return st.lists(st.one_of(_USERS, _ASSISTANTS, _RESULTS), max_size=12)


@st.composite
def _whole_history(draw):
    messages, number = [], 0
    for _ in range(draw(st.integers(1, 8))):
        messages.append(UserMessage(content=draw(st.text("ab c", min_size=1, max_size=400)) + "."))
        for _ in range(draw(st.integers(0, 4))):
            calls = []
            for _ in range(draw(st.integers(1, 3))):
                number += 1
                calls.append(ToolCallPart(id=f"call-{number}", name="look", arguments={"path": f"f{number % 7}"}))
            messages.append(AssistantMessage(content=tuple(calls), stop="tool_calls"))
            size = draw(st.integers(0, 900))
            messages += [ToolResultMessage(call=call.id, tool="look", content="x" * size) for call in calls]
            if draw(st.booleans()) and draw(st.booleans()):
                messages.append(UserMessage(content=f"and also {number}"))
        messages.append(AssistantMessage(content="done " * draw(st.integers(1, 60))))
    return tuple(messages[: len(messages) - draw(st.integers(0, 1))])


@pytest.fixture(scope="session")
def whole_histories():
    """A strategy for valid conversations with tool calls; the last run may be in progress."""
    return _whole_history()
