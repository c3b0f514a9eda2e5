"""Find, list, fork and delete sessions."""

import pytest
from sideband.messages import AssistantMessage, UserMessage
from sideband_agent.sessions import (
    ChannelEntry,
    CompactionEntry,
    EntryNotFound,
    MessageEntry,
    RunEntry,
    SessionAmbiguous,
    SessionLocked,
    SessionNotFound,
    Sessions,
)

pytestmark = pytest.mark.anyio


def user(text):
    return MessageEntry(message=UserMessage(content=text))


@pytest.fixture
def make(sessions):
    """Store a session with these messages and return its id."""

    async def make(*messages, **options):
        async with await sessions.create(**options) as session:
            await session.append(*(user(text) for text in messages))
        return session.id

    return make


async def test_session_is_found_by_id_id_prefix_and_name(sessions, make):
    session = await make("a", name="stars")
    for wanted in (session, session[:7], "stars"):
        assert (await sessions.read(wanted)).id == session


async def test_unknown_session_suggests_the_closest_name(sessions, make):
    await make("a", name="stars")
    with pytest.raises(SessionNotFound) as caught:
        await sessions.open("star")
    assert "`stars`" in caught.value.message


async def test_empty_name_matches_no_session(sessions, make):
    await make("a")
    with pytest.raises(SessionNotFound):
        await sessions.open("")


async def test_ambiguous_name_is_rejected_with_the_ids(sessions, make):
    ids = {await make("a", name="same"), await make("b", name="same")}
    with pytest.raises(SessionAmbiguous) as caught:
        await sessions.open("same")
    assert all(one in caught.value.message for one in ids)


async def test_list_is_sorted_newest_first(sessions, make):
    first, second = await make("a"), await make("b")
    later = MessageEntry(message=UserMessage(content="again"), time="2999-12-31T00:00:00Z")
    async with await sessions.open(first) as session:
        await session.append(later)
    assert [info.id for info in await sessions.list()] == [first, second]
    assert (await sessions.latest()).id == first
    assert [info.id for info in await sessions.list(limit=1)] == [first]


async def test_list_contains_summaries(sessions, make, tmp_path):
    async with await sessions.create(name="n", folder=tmp_path, channel="server") as session:
        await session.append(user("  what is\nthis"), MessageEntry(message=AssistantMessage(content="that")))
        await session.append(ChannelEntry(channel="cli"))
    (info,) = await sessions.list()
    assert (info.name, info.path, info.channel, info.parent) == ("n", tmp_path, "cli", None)
    assert (info.entries, info.messages, info.first) == (4, 2, "what is\nthis")
    assert info.created <= info.updated


async def test_empty_session_is_not_listed(sessions):
    await (await sessions.create()).aclose()
    assert await sessions.list() == ()
    assert await sessions.latest() is None


async def test_list_of_a_folder_contains_its_sessions_only(sessions, make, tmp_path):
    here = await make("a", folder=tmp_path / "here")
    await make("b", folder=tmp_path / "there")
    assert [info.id for info in await sessions.list(folder=tmp_path / "here")] == [here]
    assert (await sessions.latest(tmp_path / "nowhere")) is None


async def test_search_matches_names_and_messages_ignoring_case(sessions, make):
    by_name, by_message = await make("x", name="Größe"), await make("y", "the GRÖSSE of it")
    await make("z")
    assert {info.id for info in await sessions.list(text="grösse")} == {by_name, by_message}
    assert len(await sessions.list(text="grösse", limit=1)) == 1


async def test_list_is_current_while_a_session_is_open_and_after_a_crash(sessions, store, tmp_path):
    session = await sessions.create()
    for number in range(300):
        await session.append(user(str(number)))
        if number in {0, 255, 256, 299}:
            (info,) = await Sessions(store, tmp_path).list()
            assert info == session.info
            assert info.messages == number + 1
    await session._lock.release()  # as when the process ends


async def test_damaged_summary_is_rebuilt_from_the_entries(sessions, make, store):
    session = await make("a")
    info = (await sessions.list())[0]
    many = {"info": {**info.as_dict(), "messages": "many"}, "records": 2, "settled": True}
    for damaged in (
        {},
        {"info": {"id": 3}},
        {"info": "x", "records": 1},
        {"info": info.as_dict(), "records": "x"},
        many,
    ):
        await store.put(f"sessions/{session}", damaged)
        assert await sessions.list() == (info,)


async def test_session_without_its_summary_is_found_by_id(sessions, make, store):
    session = await make("a")
    await store.delete(f"sessions/{session}")
    async with await sessions.open(session) as again:
        await again.append(user("b"))
    assert [info.messages for info in await sessions.list()] == [2]


async def test_open_session_can_be_read(sessions):
    async with await sessions.create() as session:
        await session.append(user("a"))
        tree = await sessions.read(session.id)
        await session.append(user("b"))
        assert [message.text for message in tree.context().messages] == ["a"]


async def test_fork_contains_only_the_path_to_an_entry(sessions):
    async with await sessions.create(name="n") as session:
        first, second, _ = await session.append(user("a"), user("b"), user("c"))
        await session.rewind(first)
        await session.append(user("d"))
        async with await sessions.fork(session.id, second) as fork:
            assert [message.text for message in fork.messages()] == ["a", "b"]
            assert (fork.parent, fork.name, fork.id == session.id) == (session.id, None, False)
            await fork.append(user("e"))
        async with await sessions.fork(session.id) as fork:
            assert [message.text for message in fork.messages()] == ["a", "d"]
        assert [message.text for message in session.messages()] == ["a", "d"]
    assert (await sessions.read(session.id)).name == "n"


async def test_fork_before_an_entry_excludes_it(sessions):
    async with await sessions.create() as session:
        first, second = await session.append(user("a"), user("b"))
        async with await sessions.fork(session.id, second, position="before") as fork:
            assert fork.leaf == first
        async with await sessions.fork(session.id, first, position="before") as fork:
            assert fork.path() == ()


async def test_fork_keeps_the_current_labels_of_its_entries(sessions):
    async with await sessions.create() as session:
        first, second, third = await session.append(user("a"), user("b"), user("c"))
        await session.label(first, "old")
        last = session.leaf
        await session.rewind(third)
        await session.label(first, "new")
        await session.label(third, "gone")
        async with await sessions.fork(session.id, second) as fork:
            assert fork.tree.labels == {first: "new"}
        async with await sessions.fork(session.id, last) as fork:
            assert fork.tree.labels == {first: "new", third: "gone"}


async def test_fork_keeps_a_compaction(sessions):
    async with await sessions.create() as session:
        _, kept = await session.append(user("a"), user("b"))
        await session.append(CompactionEntry(summary="s", first_kept=kept), user("c"))
        async with await sessions.fork(session.id) as fork:
            assert fork.messages() == session.messages()


async def test_copied_run_is_not_resumed_in_a_fork(sessions):
    async with await sessions.create() as session:
        (started, _) = await session.append(RunEntry(run="r", status="started"), user("a"))
        async with await sessions.fork(session.id) as fork:
            assert fork.unfinished_run() is None
            await fork.append(RunEntry(run="s", status="started"))
            assert fork.unfinished_run().run == "s"
            await fork.rewind(started)
            assert fork.unfinished_run() is None
    async with await sessions.open(fork.id) as again:
        assert again.unfinished_run() is None


async def test_fork_at_a_missing_entry_creates_no_session(sessions, make, store):
    session = await make("a")
    with pytest.raises(EntryNotFound):
        await sessions.fork(session, "no")
    assert list(await store.keys("sessions/")) == [f"sessions/{session}"]


async def test_deleted_session_leaves_nothing(sessions, make, store):
    session, other = await make("a"), await make("b")
    await store.put(f"session/{session}/outputs/1", {"text": "long"})
    await sessions.delete(session)
    assert list(await store.keys("session")) == [f"sessions/{other}"]
    assert list(await store.read(f"session/{session}")) == []
    with pytest.raises(SessionNotFound):
        await sessions.read(session)


async def test_open_session_is_not_deleted(sessions):
    async with await sessions.create() as session:
        with pytest.raises(SessionLocked):
            await sessions.delete(session.id)
        await session.append(user("a"))
