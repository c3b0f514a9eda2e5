"""Secrets in entries: texts lose them, and what the format defines stays, so that each entry can be read again."""

from functools import partial
from typing import get_args

import pytest
from sideband.broker import Redaction
from sideband.messages import (
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from sideband_agent.sessions import (
    BranchSummaryEntry,
    ChannelEntry,
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    ForeignEntry,
    GoalEntry,
    LabelEntry,
    LeafEntry,
    MessageEntry,
    ModelEntry,
    NameEntry,
    RouteEntry,
    RunEntry,
    Sessions,
    ThinkingEntry,
)
from sideband_agent.sessions._entry_redaction import redacted
from sideband_agent.sessions._format import Entry, entry_of, record_of

pytestmark = pytest.mark.anyio

PNG = "iVBORw0KGgo="
FIXED = (
    *("id", "parent", "time", "run", "step", "resume_at", "first_kept", "seed"),
    *("carried", "tokens_before", "target", "from_"),
)
PLACE = {"id": "12345678", "parent": "87654321", "time": "2026-11-23T08:00:00.123Z"}
GIVEN = (
    ImagePart(media_type="image/png", data=PNG),
    AudioPart(media_type="audio/wav", data=PNG),
    FilePart(media_type="application/pdf", data=PNG, name="4321.pdf"),
)
CALL = ToolCallPart(id="c1234", name="tool1234", arguments={"pin": 1234, "text": "1234"})
ANSWER = AssistantMessage(
    content=(TextPart(text="hello"), ThinkingPart(text="hm"), CALL),
    stop="tool_calls",
    usage=Usage(input=1234, cost=1.5),
)
ENTRIES = [
    MessageEntry(**PLACE, message=UserMessage(content="hello 1234"), run="r1234", step="1234"),
    MessageEntry(**PLACE, message=UserMessage(content=(TextPart(text="hello"), *GIVEN))),
    MessageEntry(**PLACE, message=ANSWER),
    MessageEntry(**PLACE, message=ToolResultMessage(call="c1234", tool="t", content="x", metadata={"ms": 1234.0})),
    RunEntry(**PLACE, run="r1234", status="parked", source="user", error={"code": "x"}, resume_at=1234.0),
    RouteEntry(**PLACE, run="r1234", plugin="p", name="n", status="started", reason="x", seed="1234"),
    ModelEntry(**PLACE, model="scripted:test"),
    ThinkingEntry(**PLACE, level="high"),
    GoalEntry(**PLACE, goal="g 1234"),
    CompactionEntry(**PLACE, summary="s", first_kept="e1234", carried=("e1234",), tokens_before=1234, details=[1234]),
    BranchSummaryEntry(**PLACE, from_="e1234", summary="s"),
    LabelEntry(**PLACE, target="e1234", label="l"),
    NameEntry(**PLACE, name="n"),
    CustomEntry(**PLACE, plugin="p", kind="k", data={"a": [1234]}),
    CustomMessageEntry(**PLACE, plugin="p", message=UserMessage(content="m")),
    LeafEntry(**PLACE, target="e1234"),
    ChannelEntry(**PLACE, channel="cli"),
    ForeignEntry(**PLACE, data={"type": "other", "id": "12345678"}),
]


@pytest.fixture
def everything():
    """Redact whatever may be redacted."""
    redaction = Redaction()
    redaction.add_pattern(r"(?s).+", "all")
    redaction.protect("1234", "pin")
    return partial(redaction.data, sensitive_keys=False)


def test_each_kind_of_entry_is_tried():
    assert {type(one) for one in ENTRIES} == set(get_args(Entry))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda one: one.type)
def test_redacted_entry_keeps_its_place_and_its_kind(entry, everything):
    clean, record = redacted(entry, everything)
    found, problem = entry_of(record)
    assert (type(found), problem) == (type(entry), "")
    assert found == clean
    before = record_of(entry)
    assert {name: record.get(name) for name in FIXED} == {name: before.get(name) for name in FIXED}


def texts(value):
    if isinstance(value, dict):
        return [text for one in (*value.keys(), *value.values()) for text in texts(one)]
    return [text for one in value for text in texts(one)] if isinstance(value, list) else [str(value)]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda one: one.type)
def test_texts_and_data_of_an_entry_are_redacted(entry, everything):
    _, record = redacted(entry, everything)
    for name in FIXED:
        record.pop(name, None)
    record.get("message", {}).pop("usage", None)
    assert not [text for text in texts(record) if "1234" in text or "hello" in text or "4321" in text]


def test_data_with_the_form_of_a_file_is_redacted_beside_an_image():
    redaction = Redaction()
    redaction.protect("s3cr3t-canary", "token")
    shown = ToolResultMessage(
        call="c",
        tool="t",
        content=(ImagePart(media_type="image/png", data=PNG),),
        metadata={"seen": {"type": "image", "media_type": "image/png", "data": "s3cr3t-canary"}},
    )
    clean, _ = redacted(MessageEntry(message=shown), redaction.data)
    assert clean.message.metadata["seen"]["data"] == "[redacted:token]"
    assert clean.message.content[0].data == PNG


async def test_messages_stay_when_a_short_secret_occurs_in_the_time_of_each_entry(store, tmp_path):
    redaction = Redaction()
    sessions = Sessions(store, tmp_path, redact=partial(redaction.data, sensitive_keys=False))
    async with await sessions.create() as session:
        await session.append_message(UserMessage(content="hello"))
        year = session.path()[-1].time[:4]
        redaction.protect(year, "pin")
        await session.append_message(UserMessage(content=f"it is {year}"))
        assert [one.text for one in session.messages()] == ["hello", "it is [redacted:pin]"]
    assert [one.text for one in (await sessions.read(session.id)).context().messages] == [
        "hello",
        "it is [redacted:pin]",
    ]
