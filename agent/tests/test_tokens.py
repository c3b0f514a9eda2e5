import pytest
from sideband.messages import (
    AssistantMessage,
    ImagePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from sideband_agent._history._tokens import context_tokens, estimate

COUNTED = Usage(input=100, output=20, cache_read=300, cache_write=80)


def answer(text="x" * 40, **fields):
    return AssistantMessage(content=text, **fields)


@pytest.mark.parametrize(("text", "tokens"), [("", 1), ("a", 1), ("a" * 4, 1), ("a" * 5, 2), ("a" * 400, 100)])
def test_four_characters_are_a_token(text, tokens):
    assert estimate(UserMessage(content=text)) == tokens


def test_an_image_counts_as_1200_tokens():
    parts = (TextPart(text="abcd"), ImagePart(media_type="image/png", data="QQ==" * 90_000))
    assert estimate(UserMessage(content=parts)) == 1_201
    assert estimate(ToolResultMessage(call="a", tool="t", content=parts)) == 1_201


def test_a_tool_call_counts_with_its_name_and_arguments():
    call = ToolCallPart(id="x" * 400, name="look", arguments={"at": "é"})
    assert estimate(AssistantMessage(content=(call,))) == 4


def test_hidden_thoughts_count_as_what_is_sent_back():
    assert estimate(AssistantMessage(content=(ThinkingPart(text="", signature="s" * 80, redacted=True),))) == 20


def test_what_the_provider_counted_counts_and_what_follows_is_estimated():
    messages = [UserMessage(content="x" * 4_000), answer(usage=COUNTED), UserMessage(content="x" * 40)]
    assert context_tokens(messages, overhead=7_000) == 500 + 10


def test_the_newest_count_counts():
    assert context_tokens([answer(usage=Usage(input=9_000)), answer(usage=COUNTED)]) == 500


@pytest.mark.parametrize("stop", ["error", "aborted"])
def test_what_a_call_counted_that_did_not_end_does_not_count(stop):
    assert context_tokens([answer(usage=COUNTED), answer(usage=Usage(input=5), stop=stop)]) == 510


def test_a_count_from_before_the_compaction_does_not_count():
    messages = [UserMessage(content="x" * 40), answer(usage=COUNTED), UserMessage(content="x" * 40)]
    assert context_tokens(messages, trusted_from=1) == 510
    assert context_tokens(messages, trusted_from=2) == 30
    assert context_tokens(messages, trusted_from=2, overhead=5) == 35


def test_nothing_has_no_tokens():
    assert context_tokens([]) == 0
