import pytest
from sideband.messages import (
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
    ImageUrlPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from sideband_agent._history._tokens import TokenCount, estimate

COUNTED = Usage(input=100, output=20, cache_read=300, cache_write=80)


def answer(text="x" * 40, **fields):
    return AssistantMessage(content=text, **fields)


@pytest.mark.parametrize(("text", "tokens"), [("", 1), ("a", 1), ("a" * 4, 1), ("a" * 5, 2), ("a" * 400, 100)])
def test_token_has_four_characters(text, tokens):
    assert estimate(UserMessage(content=text)) == tokens


def test_image_is_estimated_at_1200_tokens():
    parts = (TextPart(text="abcd"), ImagePart(media_type="image/png", data="QQ==" * 90_000))
    assert estimate(UserMessage(content=parts)) == 1_201
    assert estimate(ToolResultMessage(call="a", tool="t", content=parts)) == 1_201


def test_tool_call_counts_its_name_and_arguments():
    call = ToolCallPart(id="x" * 400, name="look", arguments={"at": "é"})
    assert estimate(AssistantMessage(content=(call,))) == 4


def test_redacted_thinking_counts_its_signature():
    assert estimate(AssistantMessage(content=(ThinkingPart(text="", signature="s" * 80, redacted=True),))) == 20


def test_provider_count_is_used_and_later_messages_are_estimated():
    messages = [UserMessage(content="x" * 4_000), answer(usage=COUNTED), UserMessage(content="x" * 40)]
    assert TokenCount().of(messages, overhead=7_000) == 500 + 10


def test_newest_provider_count_is_used():
    assert TokenCount().of([answer(usage=Usage(input=9_000)), answer(usage=COUNTED)]) == 500


@pytest.mark.parametrize("stop", ["error", "aborted"])
def test_count_of_an_incomplete_answer_is_ignored(stop):
    assert TokenCount().of([answer(usage=COUNTED), answer(usage=Usage(input=5), stop=stop)]) == 510


def test_count_from_before_a_compaction_is_ignored():
    messages = [UserMessage(content="x" * 40), answer(usage=COUNTED), UserMessage(content="x" * 40)]
    assert TokenCount().of(messages, trusted_from=1) == 510
    assert TokenCount().of(messages, trusted_from=2) == 30
    assert TokenCount().of(messages, trusted_from=2, overhead=5) == 35


def test_empty_conversation_has_no_tokens():
    assert TokenCount().of([]) == 0


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        (ImageUrlPart(url="https://images.example/a.png"), 1_200),
        (FilePart(media_type="application/pdf", data="AAAA" * 10_000, name="a.pdf"), 1_500),
        (AudioPart(media_type="audio/wav", data="AAAA" * 10_000), 30),
    ],
    ids=["image by address", "file", "audio"],
)
def test_attachment_is_estimated_by_its_size(part, tokens):
    assert estimate(UserMessage(content=(part,))) == tokens


def test_count_of_a_growing_conversation_equals_that_of_a_whole_one():
    messages = [answer(usage=COUNTED), *(UserMessage(content="x" * 40) for _ in range(5)), answer(usage=Usage(input=7))]
    count = TokenCount()
    for end in range(len(messages) + 1):
        for trusted in (0, 1, end):
            assert count.of(messages[:end], trusted_from=trusted) == TokenCount().of(
                messages[:end], trusted_from=trusted
            )
    shorter = [UserMessage(content="y" * 80)]
    assert count.of(shorter, overhead=3) == 23


def test_only_new_messages_are_counted(count_calls):
    def calls(size):
        count = TokenCount()
        messages = [UserMessage(content="hello")] * size
        count.of(messages)
        return count_calls(lambda: count.of([*messages, messages[0]]))

    assert calls(1_000) == calls(100), "keep the estimates of messages that were counted before"
