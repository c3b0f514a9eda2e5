"""Sessions as files: lossless export and import, and notices about damage."""

import json
import stat

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sideband import SidebandError
from sideband.active_skills import pre_approvals
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
    SessionFileExists,
    SessionTooNew,
    SessionUnreadable,
    ThinkingEntry,
    read_file,
    write_file,
)

pytestmark = pytest.mark.anyio
PROPERTY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)

HEADER = '{"type":"session","version":1,"id":"0123456789abcdef","time":"2026-01-01T00:00:00.000Z","channel":"cli"}\n'
MESSAGE = '{"id":"%s","time":"2026-01-01T00:00:00.000Z","type":"message","message":{"role":"user","content":"%s"}}\n'

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
    """Append entries; references are to existing entries."""
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
@example(growth=[("leaf", 1), ("label", 2), ("compaction", 2)])
async def test_export_and_import_round_trip_byte_for_byte(sessions, growth):
    async with await sessions.create(folder=None, name="n") as session:
        await grow(session, growth)
        context = session.tree.context()
    lines = list(await sessions.export(session.id))
    await sessions.delete(session.id)
    info, notices = await sessions.import_([line.encode() for line in lines])
    assert (info.id, notices) == (session.id, ())
    assert list(await sessions.export(info.id)) == lines
    assert (await sessions.read(info.id)).context() == context
    await sessions.delete(info.id)


async def test_existing_session_is_imported_with_another_id(sessions):
    info, _ = await sessions.import_([HEADER, MESSAGE % ("a", "hello")])
    assert info.id == "0123456789abcdef"
    again, notices = await sessions.import_([HEADER, MESSAGE % ("a", "hello")])
    assert again.id != info.id
    assert notices == (f"session `{info.id}` already exists; imported as `{again.id}`",)


async def test_unsafe_id_is_replaced(sessions):
    info, _ = await sessions.import_([HEADER.replace("0123456789abcdef", "../../../evil"), MESSAGE % ("a", "x")])
    assert info.id.isalnum()
    assert (await sessions.read(info.id)).context().messages[0].text == "x"


async def test_imported_session_can_be_named(sessions):
    info, _ = await sessions.import_([HEADER, MESSAGE % ("a", "x")], name="copy")
    assert info.name == "copy"
    assert (await sessions.read("copy")).id == info.id


async def test_imported_session_pre_approves_nothing(sessions):
    metadata = '{"skill":"release","allowed_tools":["command"]}'
    result = f'{{"role":"tool","call":"1","tool":"skill","content":[],"metadata":{metadata}}}'
    line = f'{{"id":"b","type":"message","time":"","message":{result}}}\n'
    info, _ = await sessions.import_([HEADER, line])
    (message,) = (await sessions.read(info.id)).context().messages
    assert message.metadata == {"skill": "release"}
    assert not [*pre_approvals([message], "command", ["ls"])]


async def test_imported_run_is_not_resumed(sessions):
    run = '{"id":"r","type":"run","run":"r","status":"started","time":""}\n'
    info, _ = await sessions.import_([HEADER.replace('"channel"', '"copied":0,"channel"'), run])
    async with await sessions.open(info.id) as session:
        assert session.unfinished_run() is None


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"{", "not JSON"),
        (b'{"a": "\x00"}', "not JSON"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": 1e999}', "out of range"),
        (b'{"a": ' + b"9" * 5000 + b"}", "digits"),
        (b"[1]", "not a JSON object"),
        (b"[" * 100_000, "nested"),
        (b'{"a":' * 150 + b"1" + b"}" * 150, "nested"),
        (b"x" * ((64 << 20) + 1), "longer than 64 MiB"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_invalid_line_is_skipped_with_a_notice(sessions, bad, why):
    lines = [HEADER.encode(), (MESSAGE % ("a", "x")).encode(), bad + b"\n", (MESSAGE % ("b", "y")).encode()]
    info, notices = await sessions.import_(lines)
    assert info.messages == 2
    assert len(notices) == 1
    assert notices[0].startswith("line 3 was skipped: ")
    assert why in notices[0]


async def test_lone_surrogates_are_replaced_with_a_notice(sessions):
    info, notices = await sessions.import_([HEADER, MESSAGE % ("a", "\\ud83d and \\ud83d\\ude00 and \\\\ud800")])
    (message,) = (await sessions.read(info.id)).context().messages
    assert message.text == "\ufffd and \U0001f600 and \\ud800"
    assert notices == ("line 2: lone surrogates were replaced",)


async def test_stored_lone_surrogate_is_exported_escaped(sessions):
    async with await sessions.create() as session:
        await session.append(CustomEntry(kind="k", data="\ud800é"))
    line = list(await sessions.export(session.id))[1]
    assert "\\ud800\\u00e9" in line
    line.encode()


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n\n"])
async def test_last_newline_is_optional(sessions, end):
    info, notices = await sessions.import_([HEADER, (MESSAGE % ("a", "x")).strip() + end])
    assert (info.messages, notices) == (1, ())


@pytest.mark.parametrize(
    "first",
    [b"", b"\n", b"{\n", b"{}\n", b"[]\n", b"\x00\n", b'{"type":"message"}\n', b'{"type":"session"}\n'],
)
async def test_file_without_a_header_is_rejected(sessions, first):
    with pytest.raises(SessionUnreadable):
        await sessions.import_([first] if first else [])
    assert await sessions.list() == ()


async def test_newer_format_is_rejected_with_a_hint(sessions):
    with pytest.raises(SessionUnreadable, match="version 2") as caught:
        await sessions.import_([HEADER.replace('"version":1', '"version":2')])
    assert "upgrade" in caught.value.hint
    assert isinstance(caught.value, SessionTooNew)
    assert caught.value.code == "session.version"
    assert await sessions.list() == ()


async def test_truncated_file_loses_its_last_line_at_most(sessions, tmp_path):
    async with await sessions.create() as session:
        for text in ("one", "€"):
            await session.append(MessageEntry(message=UserMessage(content=text)))
    whole = "".join(await sessions.export(session.id)).encode()
    header = whole.index(b"\n") + 1
    file = tmp_path / "truncated"
    ends = [header, whole.index(b"\n", header) + 1, whole.index("€".encode()), len(whole)]
    near_ends = {end + offset for end in ends for offset in range(-3, 4) if end + offset <= len(whole)}
    for cut in sorted({*near_ends, *range(0, len(whole), 7)}):
        file.write_bytes(whole[:cut])
        if cut < header - 1:
            with pytest.raises(SessionUnreadable):
                await sessions.import_(read_file(file))
            continue
        info, notices = await sessions.import_(read_file(file))
        complete = whole[header:cut].count(b"\n")
        # only the newline may be missing
        assert info.messages in {complete, complete + 1}
        assert info.messages == complete or whole[cut : cut + 1] == b"\n"
        texts = [message.text for message in (await sessions.read(info.id)).context().messages]
        assert texts == ["one", "€"][: info.messages]
        truncated = [notice for notice in notices if "truncated" in notice]
        assert bool(truncated) == (whole[cut - 1 : cut] != b"\n" and info.messages == complete and cut > header)
        await sessions.delete(info.id)


@PROPERTY
@given(lines=st.lists(st.binary(max_size=30) | st.builds(lambda value: json.dumps(value).encode(), DATA), max_size=6))
async def test_arbitrary_file_raises_no_other_errors(sessions, lines):
    try:
        info, _ = await sessions.import_([HEADER.encode(), *(line + b"\n" for line in lines)])
    except SidebandError:
        return
    assert list(await sessions.export(info.id))
    await sessions.delete(info.id)


def test_written_file_is_private_and_replaces_no_other(tmp_path):
    file = tmp_path / "session.jsonl"
    write_file(file, ["a\n", "b\n"])
    assert file.read_text() == "a\nb\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(SessionFileExists):
        write_file(file, ["c\n"])
    assert file.read_text() == "a\nb\n"
    write_file(file, ["c\n"], overwrite=True)
    assert file.read_text() == "c\n"
    assert list(tmp_path.iterdir()) == [file]


def test_partially_written_file_is_removed(tmp_path):
    def lines():
        yield "a\n"
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_file(tmp_path / "session.jsonl", lines())
    assert list(tmp_path.iterdir()) == []


def test_unreadable_or_unwritable_file_is_reported_with_a_hint(tmp_path):
    with pytest.raises(SessionUnreadable) as unreadable:
        list(read_file(tmp_path / "missing"))
    with pytest.raises(SidebandError) as unwritable:
        write_file(tmp_path / "missing" / "file", [])
    assert unreadable.value.hint
    assert unwritable.value.hint


def test_overlong_line_is_read_in_part(tmp_path):
    file = tmp_path / "long"
    with file.open("wb") as stream:
        stream.seek((150 << 20) - 1)
        stream.write(b"\nnext\n")
    first, second = read_file(file)
    assert len(first) == (64 << 20) + 1
    assert second == b"next\n"
