import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.messages import AssistantMessage, TextPart, ThinkingPart, ToolCallPart, ToolResultMessage, UserMessage
from sideband_agent._history._repair import repair


def asks(*ids, text="", stop="tool_calls", problem=None):
    calls = tuple(ToolCallPart(id=one, name="look", problem=problem) for one in ids)
    return AssistantMessage(content=(TextPart(text=text), *calls) if text else calls, stop=stop)


def result(call, text="seen"):
    return ToolResultMessage(call=call, tool="look", content=text)


def user(text="hello"):
    return UserMessage(content=text)


DONE = AssistantMessage(content="done")


def shape(messages):
    return [
        one.call if one.role == "tool" else [call.id for call in one.tool_calls] or one.text
        for one in ((m if m.role != "user" else AssistantMessage(content=m.text)) for m in messages)
    ]


@given(data=st.data())
def test_repaired_history_is_valid(data, damaged_histories, history_problems):
    messages = data.draw(damaged_histories)
    repaired, _ = repair(messages)
    assert history_problems(repaired) == []


@given(data=st.data())
def test_repair_is_idempotent(data, damaged_histories):
    repaired, _ = repair(data.draw(damaged_histories))
    assert repair(repaired) == (repaired, ())


@given(data=st.data())
def test_user_messages_are_never_dropped(data, damaged_histories):
    messages = data.draw(damaged_histories)
    expected = [one for one in messages if one.role == "user" and one.text.strip()]
    assert [one for one in repair(messages)[0] if one.role == "user"] == expected


@given(data=st.data())
def test_valid_history_is_unchanged(data, whole_histories, history_problems):
    messages = data.draw(whole_histories)
    repaired, notices = repair(messages)
    assert notices == ()
    assert all(one is other for one, other in zip(messages, repaired, strict=True))


def test_call_without_a_result_gets_an_error_result():
    repaired, notices = repair([user(), asks("a", "b"), result("b")])
    assert shape(repaired) == ["hello", ["a", "b"], "a", "b"]
    assert repaired[2].is_error
    assert "may have been executed" in repaired[2].text
    assert len(notices) == 1
    assert "`a`" in notices[0]


def test_malformed_call_is_reported_as_not_run():
    repaired, _ = repair([user(), asks("a", problem="not a JSON object")])
    assert repaired[2].text == "This call was not run: not a JSON object"


def test_result_without_a_call_is_dropped_with_a_notice():
    repaired, notices = repair([user(), result("a"), DONE])
    assert shape(repaired) == ["hello", "done"]
    assert "without a call" in notices[0]


def test_result_for_a_failed_answer_is_dropped():
    repaired, notices = repair([user(), asks("a", stop="error"), result("a"), DONE])
    assert shape(repaired) == ["hello", "done"]
    assert len(notices) == 1


def test_second_result_is_dropped():
    repaired, notices = repair([user(), asks("a"), result("a", "first"), result("a", "second"), DONE])
    assert shape(repaired) == ["hello", ["a"], "a", "done"]
    assert repaired[2].text == "first"
    assert "second" in notices[0]


def test_results_are_put_in_the_order_of_the_calls():
    repaired, notices = repair([user(), asks("a", "b", "c"), result("c"), result("a"), result("b")])
    assert shape(repaired) == ["hello", ["a", "b", "c"], "a", "b", "c"]
    assert notices


def test_result_after_a_user_message_is_moved_to_its_call():
    repaired, notices = repair([user(), asks("a", "b"), result("a"), user("quick"), result("b"), DONE])
    assert shape(repaired) == ["hello", ["a", "b"], "a", "b", "quick", "done"]
    assert "moved" in notices[0]


def test_result_after_another_turn_is_moved_to_its_call():
    repaired, _ = repair([user(), asks("a"), asks("b"), result("b", "of b"), result("a", "of a")])
    assert shape(repaired) == ["hello", ["a"], "a", ["b"], "b"]
    assert [one.text for one in repaired if one.role == "tool"] == ["of a", "of b"]


def test_id_reused_in_a_later_turn_is_replaced():
    history = [user(), asks("a"), result("a", "one"), asks("a"), result("a", "two"), asks("a-2"), result("a-2")]
    repaired, notices = repair(history)
    assert shape(repaired) == ["hello", ["a"], "a", ["a-3"], "a-3", ["a-2"], "a-2"]
    assert [one.text for one in repaired if one.role == "tool"] == ["one", "two", "seen"]
    assert len(notices) == 1


def test_id_reused_within_a_turn_keeps_both_results():
    repaired, _ = repair([user(), asks("a", "a"), result("a", "one"), result("a", "two")])
    assert shape(repaired) == ["hello", ["a", "a-2"], "a", "a-2"]
    assert [one.text for one in repaired[2:]] == ["one", "two"]


@pytest.mark.parametrize("content", [(), "", " \n", (ThinkingPart(text="hm", signature="s"),)])
def test_empty_answer_is_dropped(content):
    repaired, notices = repair([user(), AssistantMessage(content=content), user("again")])
    assert shape(repaired) == ["hello", "again"]
    assert "empty assistant" in notices[0]


def test_failed_answer_is_dropped_without_a_notice():
    failed = AssistantMessage(content="so", stop="error", error={"code": "provider.failed"})
    assert repair([user(), failed]) == ((user(),), ())


def test_aborted_answer_is_kept_with_its_calls():
    repaired, _ = repair([user(), asks("a", text="I look", stop="aborted"), user("stop")])
    assert shape(repaired) == ["hello", ["a"], "a", "stop"]
