"""The messages of a model call, of which only those are prepared that the last call did not send."""

from operator import is_

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.messages import AssistantMessage, ToolCallPart, ToolResultMessage, UserMessage
from sideband_agent._model_steps._fitting import fitted
from sideband_agent._model_steps._sent_history import SentHistory


def exchange(number):
    call = ToolCallPart(id=f"c{number}", name="look.up", arguments={"n": number})
    return (
        UserMessage(content=f"question {number}"),
        AssistantMessage(content=(call,), stop="tool_calls"),
        ToolResultMessage(call=call.id, tool="look__up", content="seen", metadata={"effect": "e1"}),
        AssistantMessage(content="done"),
    )


def talk(count):
    return tuple(one for number in range(count) for one in exchange(number))


def test_messages_are_sent_without_metadata_and_with_plain_names():
    sent = SentHistory().prepare(talk(1), stored=4)
    assert sent[1].tool_calls[0].name == "look__up"
    assert sent[2].metadata == {}


def test_messages_that_were_sent_before_are_the_same_objects():
    history = SentHistory()
    messages = talk(3)
    before = history.prepare(messages, stored=len(messages))
    longer = (*messages, *exchange(3))
    after = history.prepare(longer, stored=len(longer))
    assert all(one is other for one, other in zip(after, before, strict=False))
    assert len(after) == len(longer)


def test_messages_of_one_call_only_are_not_kept():
    history = SentHistory()
    messages = talk(2)
    sent = history.prepare((*messages, UserMessage(content="only now")), stored=len(messages))
    assert sent[-1].text == "only now"
    assert len(history.prepare(messages, stored=len(messages))) == len(messages)


@pytest.mark.parametrize("stored", [8, 10])
def test_a_call_that_was_repaired_in_one_request_is_sent_unchanged_once_it_has_a_result(stored):
    history = SentHistory()
    messages = talk(2)
    question, call, *rest = exchange(2)
    history.prepare(messages, stored=len(messages))
    sent = history.prepare((*messages, question, call), stored=stored)
    assert sent[-1].is_error
    whole = (*messages, question, call, *rest)
    history.prepare(whole, stored=len(whole))
    assert history.used_ids(whole) == {"c0", "c1", "c2"}
    assert all(map(is_, history.prepare(whole, stored=len(whole)), history.prepare(whole, stored=len(whole))))


@given(data=st.data())
def test_a_growing_history_is_prepared_as_a_whole_one(data, damaged_histories):
    messages = tuple(data.draw(damaged_histories))
    history = SentHistory()
    for end in sorted(data.draw(st.sets(st.integers(0, len(messages))))):
        stored = data.draw(st.integers(0, end))
        assert history.prepare(messages[:end], stored=stored) == SentHistory().prepare(messages[:end], stored=end)
        used = {part.id for one in messages[:end] if one.role == "assistant" for part in one.tool_calls}
        assert history.used_ids(messages[:end]) == used


@given(data=st.data())
def test_another_history_is_not_mistaken_for_the_last_one(data, damaged_histories):
    history = SentHistory()
    for _ in range(3):
        messages = tuple(data.draw(damaged_histories))
        expected = SentHistory().prepare(messages, stored=len(messages))
        assert history.prepare(messages, stored=len(messages)) == expected


@pytest.mark.parametrize("other", [talk(1), talk(2)[4:], (*talk(1), *talk(3)[8:])])
def test_a_changed_history_is_prepared_again(other):
    history = SentHistory()
    history.prepare(talk(2), stored=8)
    assert history.prepare(other, stored=len(other)) == SentHistory().prepare(other, stored=len(other))


def test_only_new_messages_are_prepared(count_calls):
    def calls(size):
        history = SentHistory()
        messages = talk(size)
        history.prepare(messages, stored=len(messages))
        longer = (*messages, *exchange(size))
        return count_calls(lambda: history.prepare(longer, stored=len(longer)))

    assert calls(250) == calls(25), "check and convert only the messages that the last call did not send"


def answer_of(*names):
    calls = [ToolCallPart(id=f"c{number}", name=name) for number, name in enumerate(names)]
    return AssistantMessage(content=tuple(calls), stop="tool_calls")


def test_valid_calls_are_not_copied_beside_an_invalid_one():
    answer = answer_of("look", "no name", "listen")
    changed = fitted(answer, set()).tool_calls
    assert [one is other for one, other in zip(changed, answer.tool_calls, strict=True)] == [True, False, True]


def test_calls_with_plain_names_are_sent_without_a_copy(count_calls):
    def calls(name):
        return count_calls(lambda: SentHistory().prepare(messages_of(name), stored=3))

    def messages_of(name):
        call = ToolCallPart(id="c", name=name)
        content = (UserMessage(content="hi"), AssistantMessage(content=(call,)))
        return (*content, ToolResultMessage(call="c", tool="look", content="seen"))

    assert calls("look__up") < calls("look.up") - 6, "copy only messages with other names"
