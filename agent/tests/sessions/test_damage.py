"""Damaged records are repaired with a notice and never changed in the store."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sideband.messages import UserMessage
from sideband_agent.sessions import EntryAmbiguous, EntryNotFound, MessageEntry, SessionNotFound, SessionTooNew, new_id

pytestmark = pytest.mark.anyio

SESSION = "0123456789abcdef"
HEADER = {"type": "session", "version": 1, "id": SESSION, "time": "2026-01-01T00:00:00.000Z", "channel": "cli"}


def record(entry, parent, text="x", **fields):
    content = [{"type": "text", "text": text}]
    message = {"role": "user", "content": content}
    return {
        "id": entry,
        "parent": parent,
        "time": "2026-01-01T00:00:00.000Z",
        "type": "message",
        "message": message,
    } | (fields)


@pytest.fixture
def stored(sessions, store):
    """Store records unchanged and open the session."""

    async def stored(*records, header=HEADER):
        await store.append(f"session/{SESSION}", [header, *records])
        return await sessions.open(SESSION)

    return stored


def texts(session):
    return [message.text for message in session.messages()]


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"type": "message"},
        {"id": 3, "type": "message"},
        {"id": "../x", "type": "message", "time": ""},
        {"id": "b"},
        {"id": "", "type": "model", "model": "a:b"},
        {"id": "b", "type": "model", "model": "a:b", "time": "\u0662\u0660\u0662\u0666-01-01T00:00:00Z"},
        {"type": "session", "id": "b", "version": 1},
    ],
)
async def test_record_that_is_not_an_entry_is_skipped(stored, bad):
    async with await stored(record("a", None), bad, record("c", "a", "y")) as session:
        assert texts(session) == ["x", "y"]
        assert [notice for notice in session.notices if notice.startswith("entry 2 was skipped")]


async def test_child_of_a_damaged_entry_follows_the_previous_one(stored):
    async with await stored(record("a", None), {"id": "b"}, record("c", "b", "y")) as session:
        assert texts(session) == ["x", "y"]


async def test_entry_with_a_missing_parent_follows_the_previous_one(stored):
    async with await stored(record("a", None), record("b", "lost", "y")) as session:
        assert texts(session) == ["x", "y"]
        assert session.notices == ("entry 2: `parent` is unknown: `lost`; replaced by `a`",)


async def test_cycle_of_entries_becomes_a_path(stored):
    async with await stored(record("a", "c", "1"), record("b", "a", "2"), record("c", "b", "3")) as session:
        assert texts(session) == ["1", "2", "3"]
        assert len(session.notices) == 1


async def test_entry_that_is_its_own_parent_follows_the_previous_one(stored):
    async with await stored(record("a", None), record("b", "b", "y")) as session:
        assert texts(session) == ["x", "y"]


async def test_duplicate_id_is_replaced_deterministically(stored, sessions):
    async with await stored(record("a", None), record("a", "a", "y"), record("c", "a", "z")) as session:
        assert texts(session) == ["x", "y", "z"]
        ids = [entry.id for entry in session.path()]
        assert len(set(ids)) == 3
        assert "reuses the id `a`" in session.notices[0]
        await session.label(ids[1], "mark")
    async with await sessions.open(SESSION) as again:
        assert [entry.id for entry in again.path()[:3]] == ids
        assert again.tree.labels == {ids[1]: "mark"}


async def test_entry_of_an_unknown_type_is_kept_but_hidden(stored):
    new = {"id": "b", "parent": "a", "time": "", "type": "hologram", "data": [1]}
    async with await stored(record("a", None), new, record("c", "b", "y")) as session:
        assert texts(session) == ["x", "y"]
        assert session.path()[1].data == new
        assert "not understood by this version" in session.notices[0]


async def test_message_with_unknown_fields_is_kept_but_hidden(stored):
    async with await stored(record("a", None), record("b", "a", aura="blue")) as session:
        assert texts(session) == ["x"]
        assert session.leaf == "b"


async def test_rewind_to_a_missing_entry_is_ignored(stored):
    back = {"id": "b", "parent": "a", "time": "", "type": "leaf", "target": "lost"}
    async with await stored(record("a", None), back, record("c", "a", "y")) as session:
        assert texts(session) == ["x", "y"]
        assert "`target` is unknown: `lost`" in session.notices[0]


async def test_compaction_with_a_missing_first_kept_entry_keeps_all_messages(stored):
    lost = {"id": "b", "parent": "a", "time": "", "type": "compaction", "summary": "s", "first_kept": "lost"}
    async with await stored(record("a", None), lost, record("c", "b", "y")) as session:
        assert texts(session)[1:] == ["x", "y"]
        assert len(session.notices) == 1


@pytest.mark.parametrize("header", [{}, {"type": "session"}, {**HEADER, "id": "fedcba9876543210"}])
async def test_session_with_a_damaged_header_is_readable_but_not_resumable(stored, header):
    run = {"id": "b", "parent": "a", "time": "", "type": "run", "run": "r", "status": "started"}
    async with await stored(record("a", None), run, header=header) as session:
        assert (session.id, texts(session)) == (SESSION, ["x"])
        assert "the header is damaged" in session.notices[0]
        assert session.unfinished_run() is None


async def test_newer_format_is_rejected_and_left_unchanged(sessions, stored, store):
    header = {**HEADER, "version": 2, "color": "red"}
    with pytest.raises(SessionTooNew, match=f"`{SESSION}` has format version 2") as caught:
        await stored(record("a", None), header=header)
    assert (caught.value.code, caught.value.version) == ("session.version", 2)
    assert "upgrade sideband-agent" in caught.value.hint
    for use in (sessions.read, sessions.export, sessions.fork, sessions.open):
        with pytest.raises(SessionTooNew):
            await use(SESSION)
    assert [one.value for one in await store.read(f"session/{SESSION}")] == [header, record("a", None)]


async def test_list_includes_other_sessions_beside_one_of_a_newer_format(sessions, stored, store):
    with pytest.raises(SessionTooNew):
        await stored(record("a", None), header={**HEADER, "version": 2})
    await store.put(f"sessions/{SESSION}", {"info": {"shape": "new"}, "records": 2})
    async with await sessions.create(name="mine"):
        pass
    assert [info.name for info in await sessions.list()] == ["mine"]
    with pytest.raises(SessionTooNew):
        await sessions.open(SESSION[:6])


async def test_label_of_a_rewind_entry_stays_on_it(stored):
    back = {"id": "b", "time": "", "type": "leaf", "target": "a"}
    mark = {"id": "c", "parent": "a", "time": "", "type": "label", "target": "b", "label": "back"}
    async with await stored(record("a", None), back, mark) as session:
        assert session.tree.labels == {"b": "back"}


async def test_entry_is_found_by_id_label_or_id_prefix(stored):
    async with await stored(record("ab", None), record("abc", "ab"), record("b", "abc")) as session:
        await session.label("b", "mark")
        found = [session.tree.find(wanted) for wanted in ("ab", "abc", "b", "mark")]
        assert found == ["ab", "abc", "b", "b"]
        with pytest.raises(EntryAmbiguous, match="ab, abc"):
            session.tree.find("a")
        for missing in ("", "x"):
            with pytest.raises(EntryNotFound):
                session.tree.find(missing)


async def test_repair_does_not_change_stored_records(stored, sessions, store):
    records = [HEADER, record("a", "lost"), {"junk": True}, record("a", "a")]
    async with await stored(*records[1:]) as session:
        await session.append(MessageEntry(message=UserMessage(content="new")))
    kept = [dict(record.value) for record in await store.read(f"session/{SESSION}")]
    assert kept[:4] == records
    assert len(kept) == 5
    async with await sessions.open(SESSION) as again:
        assert texts(again) == ["x", "x", "new"]


async def test_session_without_its_stream_is_missing_and_not_locked(sessions, store, tmp_path):
    async with await sessions.create(name="n") as session:
        pass
    await store.delete_stream(f"session/{session.id}")
    with pytest.raises(SessionNotFound):
        await sessions.open("n")
    assert list((tmp_path / "sessions" / "locks").iterdir()) == []


IDS = st.sampled_from(["a", "b", "c", "d", "", "lost"]) | st.none()
KINDS = {
    "message": lambda target: {"message": {"role": "user", "content": "x"}},
    "leaf": lambda target: {"target": target},
    "label": lambda target: {"target": target, "label": "l"},
    "compaction": lambda target: {"summary": "s", "first_kept": target},
    "run": lambda target: {"run": "r", "status": "started"},
    "hologram": lambda target: {"target": target},
}
ENTRIES = st.builds(
    lambda entry, parent, target, kind: {
        "id": entry,
        "parent": parent,
        "time": "",
        "type": kind,
        **KINDS[kind](target),
    },
    IDS,
    IDS,
    IDS,
    st.sampled_from(sorted(KINDS)),
)
JUNK = st.dictionaries(st.sampled_from(["id", "parent", "type", "time", "message"]), IDS | st.integers())


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(records=st.lists(ENTRIES | JUNK, max_size=12))
async def test_session_with_arbitrary_records_can_be_read_and_written(sessions, store, records):
    name = new_id()
    await store.append(f"session/{name}", [{**HEADER, "id": name}, *records])
    async with await sessions.open(name) as session:
        for entry in session.tree.entries:
            path = session.path(entry.id)
            assert len({one.id for one in path}) == len(path)
            assert [entry.id for entry in path[-1:]] == [one for one in [session.tree.position(entry.id)] if one]
            assert session.tree.context(entry.id) is not None
        await session.append(MessageEntry(message=UserMessage(content="new")))
        messages, leaf = session.messages(), session.leaf
    async with await sessions.open(name) as again:
        assert (again.messages(), again.leaf) == (messages, leaf)
        assert messages[-1].text == "new"
