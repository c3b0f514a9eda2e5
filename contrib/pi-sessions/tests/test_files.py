"""Complete, truncated and malformed session files of pi."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sideband import SidebandError
from sideband.messages import AssistantMessage, ToolResultMessage, UserMessage
from sideband_agent.sessions import (
    BranchSummaryEntry,
    ChannelEntry,
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    LabelEntry,
    LeafEntry,
    MessageEntry,
    ModelEntry,
    NameEntry,
    RunEntry,
    SessionUnreadable,
    ThinkingEntry,
    read_file,
)

pytestmark = pytest.mark.anyio
PROPERTY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)

HEADER = '{"type":"session","version":3,"id":"x","timestamp":"t","cwd":"/"}\n'

TEXT = st.text(max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
DATA = st.dictionaries(TEXT, JSON, max_size=3)
CALL = st.builds(lambda arguments: {"type": "tool_call", "id": "c", "name": "t", "arguments": arguments}, DATA)
PART = st.builds(lambda text: {"type": "text", "text": text}, TEXT)
BODIES = st.one_of(
    st.builds(lambda text: MessageEntry(message=UserMessage(content=text)), TEXT),
    st.builds(lambda parts: MessageEntry(message=AssistantMessage(content=parts)), st.lists(CALL | PART, max_size=3)),
    st.builds(
        lambda text, data: MessageEntry(message=ToolResultMessage(call="c", tool="t", content=text, metadata=data)),
        TEXT,
        DATA,
    ),
    st.builds(lambda data: CustomEntry(kind="k", data=data), JSON),
    st.builds(lambda text: CustomMessageEntry(plugin="p", message=UserMessage(content=text, source="p")), TEXT),
    st.builds(lambda text: NameEntry(name=text), TEXT),
    st.builds(lambda text: ModelEntry(model=text), TEXT),
    st.builds(lambda text: ChannelEntry(channel=text), TEXT),
    st.builds(lambda status: RunEntry(run="r", status=status), st.sampled_from(["started", "completed", "failed"])),
    st.sampled_from(["leaf", "label", "compaction", "branch", "thinking"]),
)


GROWTH = st.lists(st.tuples(BODIES, st.integers(0, 20)), max_size=8)


async def grow(session, growth):
    """Append entries; references name existing entries."""
    for body, number in growth:
        ids = [None, *(entry.id for entry in session.tree.entries)]
        target = ids[number % len(ids)]
        at_target = {
            "leaf": LeafEntry(target=target),
            "label": LabelEntry(target=target, label="x") if target else ThinkingEntry(level="low"),
            "compaction": CompactionEntry(summary="s", first_kept=target, read_files=("f",)),
            "branch": BranchSummaryEntry(from_=target, summary="s"),
            "thinking": ThinkingEntry(level="high"),
        }
        await session.append(at_target[body] if isinstance(body, str) else body)


@PROPERTY
@given(growth=GROWTH)
async def test_export_and_import_preserve_the_conversation(sessions, growth):
    async with await sessions.create() as session:
        await grow(session, growth)
    lines = list(await sessions.export(session.id, format="pi"))
    info, notices = await sessions.import_(lines)
    assert notices == ()
    assert list(await sessions.export(info.id, format="pi")) == lines
    original = [(m.role, m.text) for m in (await sessions.read(session.id)).context().messages]
    assert [(m.role, m.text) for m in (await sessions.read(info.id)).context().messages] == original


async def test_file_truncated_at_any_byte_loses_at_most_its_last_line(sessions, tmp_path):
    async with await sessions.create() as session:
        for text in ("one", "€"):
            await session.append(MessageEntry(message=UserMessage(content=text)))
    whole = "".join(await sessions.export(session.id, format="pi")).encode()
    header = whole.index(b"\n") + 1
    file = tmp_path / "torn"
    for cut in range(len(whole) + 1):
        file.write_bytes(whole[:cut])
        if cut < header - 1:
            with pytest.raises(SessionUnreadable):
                await sessions.import_(read_file(file))
            continue
        info, notices = await sessions.import_(read_file(file))
        complete = whole[header:cut].count(b"\n")
        # A line that lacks only its newline is complete.
        assert info.messages in {complete, complete + 1}
        assert info.messages == complete or whole[cut : cut + 1] == b"\n"
        texts = [message.text for message in (await sessions.read(info.id)).context().messages]
        assert texts == ["one", "€"][: info.messages]
        truncated = [notice for notice in notices if "truncated" in notice]
        assert bool(truncated) == (whole[cut - 1 : cut] != b"\n" and info.messages == complete and cut > header)
        await sessions.delete(info.id)


@PROPERTY
@given(lines=st.lists(st.binary(max_size=30) | st.builds(lambda value: json.dumps(value).encode(), DATA), max_size=6))
async def test_arbitrary_lines_raise_only_sideband_errors(sessions, lines):
    try:
        info, _ = await sessions.import_([HEADER.encode(), *(line + b"\n" for line in lines)])
    except SidebandError:
        return
    for format_ in ("sideband", "pi"):
        assert list(await sessions.export(info.id, format=format_))
    await sessions.delete(info.id)
