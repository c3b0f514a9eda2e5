"""Writing a session: append, rewind, visible messages, exclusive access."""

import pytest
from sideband.messages import AssistantMessage, UserMessage
from sideband_agent.sessions import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    EntryNotFound,
    LabelEntry,
    MessageEntry,
    ModelEntry,
    RunEntry,
    SessionClosed,
    SessionLocked,
    Sessions,
    ThinkingEntry,
)

pytestmark = pytest.mark.anyio


def user(text):
    return MessageEntry(message=UserMessage(content=text))


def assistant(text, **fields):
    return MessageEntry(message=AssistantMessage(content=text, **fields))


def texts(session):
    return [message.text for message in session.messages()]


async def test_appended_entries_are_read_when_the_session_is_reopened(sessions):
    async with await sessions.create() as session:
        ids = await session.append(user("hello"), assistant("hi"))
    async with await sessions.open(session.id) as again:
        assert texts(again) == ["hello", "hi"]
        assert [entry.id for entry in again.path()] == list(ids)
        assert again.leaf == ids[1]
        assert again.notices == ()


async def test_entries_are_on_disk_when_the_session_was_synced_or_closed(sessions, store):
    async with await sessions.create() as session:
        await session.append(user("hello"))
        await session.sync()
        assert store.unsynced() is None
        await session.append(user("again"))
        assert store.unsynced() is not None
    assert store.unsynced() is None


async def test_entry_follows_the_previous_one(sessions):
    async with await sessions.create() as session:
        first, second = await session.append(user("a"), assistant("b"))
        third = await session.append_message(UserMessage(content="c"), run="r", step="1")
        assert [entry.parent for entry in session.path()] == [None, first, second]
        assert (session.path()[-1].id, session.path()[-1].run, session.path()[-1].step) == (third, "r", "1")


async def test_id_has_sixteen_digits_and_time_is_utc(sessions):
    async with await sessions.create() as session:
        (entry,) = await session.append(user("a"))
        assert len(entry) == len(session.id) == 16
        assert session.path()[0].time.endswith("Z")


async def test_rewind_keeps_the_other_branch(sessions):
    async with await sessions.create() as session:
        first, second, third = await session.append(user("a"), assistant("b"), user("c"))
        assert await session.rewind(second) == second
        await session.append(user("d"))
        assert texts(session) == ["a", "b", "d"]
        assert [entry.id for entry in session.path(third)] == [first, second, third]
    async with await sessions.open(session.id) as again:
        assert texts(again) == ["a", "b", "d"]


async def test_rewind_to_the_beginning_starts_a_new_branch(sessions):
    async with await sessions.create() as session:
        await session.append(user("a"))
        assert await session.rewind(None) is None
        assert session.messages() == ()
        await session.append(user("b"))
        assert texts(session) == ["b"]
    async with await sessions.open(session.id) as again:
        assert texts(again) == ["b"]


async def test_rewind_to_a_rewind_entry_uses_its_target(sessions):
    async with await sessions.create() as session:
        first, _ = await session.append(user("a"), user("b"))
        await session.rewind(first)
        back = session.tree.entries[-1].id
        await session.append(user("c"))
        assert await session.rewind(back) == first
        assert texts(session) == ["a"]
        assert session.path(back) == session.path(first)


async def test_summary_of_the_left_branch_is_visible(sessions):
    async with await sessions.create() as session:
        first, left = await session.append(user("a"), user("b"))
        await session.rewind(first, summary="tried b")
        summary = session.messages()[-1]
        assert (summary.source, "tried b" in summary.text) == ("branch", True)
        assert isinstance(session.path()[-1], BranchSummaryEntry)
        assert session.path()[-1].from_ == left


async def test_compaction_replaces_messages_before_first_kept(sessions):
    async with await sessions.create() as session:
        _, _, kept = await session.append(user("a"), assistant("b"), user("c"))
        await session.append(CompactionEntry(summary="a and b", first_kept=kept, tokens_before=9))
        await session.append(assistant("d"))
        summary, *rest = session.messages()
        assert (summary.source, "a and b" in summary.text) == ("summary", True)
        assert [message.text for message in rest] == ["c", "d"]
        assert len(session.context().entries) == 3
        assert len(session.path()) == 5


async def test_last_compaction_is_used(sessions):
    async with await sessions.create() as session:
        _, kept = await session.append(user("a"), user("b"))
        await session.append(CompactionEntry(summary="one", first_kept=kept))
        (kept,) = await session.append(user("c"))
        await session.append(CompactionEntry(summary="two", first_kept=kept), user("d"))
        assert [text for text in texts(session) if "one" in text] == []
        assert texts(session)[1:] == ["c", "d"]


async def test_compaction_without_first_kept_leaves_its_summary(sessions):
    async with await sessions.create() as session:
        await session.append(user("a"), CompactionEntry(summary="one"), user("b"))
        assert len(texts(session)) == 2
        assert texts(session)[1] == "b"


async def test_rewind_before_a_compaction_restores_the_messages(sessions):
    async with await sessions.create() as session:
        first, second = await session.append(user("a"), user("b"))
        await session.append(CompactionEntry(summary="one", first_kept=second))
        await session.rewind(first)
        assert texts(session) == ["a"]
        assert session.context().compaction is None


async def test_failed_answer_is_hidden_and_aborted_answer_is_visible(sessions):
    async with await sessions.create() as session:
        await session.append(user("a"), assistant("broken", stop="error"), assistant("half", stop="aborted"))
        assert texts(session) == ["a", "half"]


async def test_plugin_message_is_visible_and_plugin_data_is_hidden(sessions):
    async with await sessions.create() as session:
        await session.append_custom("state", {"n": None}, plugin="p")
        await session.append(CustomMessageEntry(plugin="p", message=UserMessage(content="note", source="p")))
        assert texts(session) == ["note"]
        assert session.path()[0].data == {"n": None}


async def test_last_data_of_a_kind_is_found_on_the_path(sessions):
    async with await sessions.create() as session:
        first = await session.append_custom("state", {"n": 1})
        await session.append_custom("state", {"n": 2})
        await session.append_custom("other", {"n": 3})
        assert (session.last_custom("state"), session.last_custom("none")) == ({"n": 2}, None)
        await session.rewind(first)
        assert session.last_custom("state") == {"n": 1}


async def test_all_messages_include_compacted_ones(sessions):
    async with await sessions.create() as session:
        *_, last = await session.append(user("a"), assistant("b"), user("c"))
        await session.append(CompactionEntry(summary="summary", first_kept=last))
        assert [one.text for one in session.all_messages()] == ["a", "b", "c"]


async def test_model_and_thinking_are_the_last_ones_on_the_path(sessions):
    async with await sessions.create() as session:
        (first, _) = await session.append(ModelEntry(model="a:1"), ThinkingEntry(level="low"))
        await session.append(ModelEntry(model="b:2"))
        assert (session.context().model, session.context().thinking) == ("b:2", "low")
        await session.rewind(first)
        assert (session.context().model, session.context().thinking) == ("a:1", None)


@pytest.mark.parametrize("status", ["started", "parked", "failed"])
async def test_incomplete_run_is_unfinished(sessions, status):
    async with await sessions.create() as session:
        await session.append(RunEntry(run="r", status="started"), user("a"), RunEntry(run="r", status=status))
        assert session.unfinished_run().run == "r"
    async with await sessions.open(session.id) as again:
        assert again.unfinished_run().status == status


@pytest.mark.parametrize("status", ["completed", "aborted"])
async def test_ended_run_is_not_unfinished(sessions, status):
    async with await sessions.create() as session:
        await session.append(RunEntry(run="r", status="started"), RunEntry(run="r", status=status))
        assert session.unfinished_run() is None


async def test_run_on_another_branch_is_not_unfinished(sessions):
    async with await sessions.create() as session:
        (first, _) = await session.append(user("a"), RunEntry(run="r", status="started"))
        await session.rewind(first)
        assert session.unfinished_run() is None


async def test_last_label_of_an_entry_is_used(sessions):
    async with await sessions.create() as session:
        one, two = await session.append(user("a"), user("b"))
        await session.label(one, "x")
        await session.label(one, "y")
        await session.label(two, "z")
        await session.label(two, None)
        assert session.tree.labels == {one: "y"}


async def test_session_can_be_renamed(sessions):
    async with await sessions.create(name="one") as session:
        assert session.name == "one"
        await session.rename("two")
        assert session.name == "two"
        await session.rename(None)
        assert session.name is None


@pytest.mark.parametrize("body", [LabelEntry(target="no", label="x"), CompactionEntry(summary="s", first_kept="no")])
async def test_entry_with_a_missing_reference_is_not_stored(sessions, body):
    async with await sessions.create() as session:
        with pytest.raises(EntryNotFound):
            await session.append(user("a"), body)
        assert session.path() == ()


async def test_rewind_to_a_missing_entry_changes_nothing(sessions):
    async with await sessions.create() as session:
        (first,) = await session.append(user("a"))
        with pytest.raises(EntryNotFound):
            await session.rewind("no")
        assert session.leaf == first


async def test_session_is_written_by_one_agent_only(sessions, store, tmp_path):
    async with await sessions.create() as session:
        with pytest.raises(SessionLocked):
            await sessions.open(session.id)
        with pytest.raises(SessionLocked):
            await Sessions(store, tmp_path).open(session.id)
    async with await sessions.open(session.id):
        pass


async def test_closed_session_rejects_writes(sessions):
    session = await sessions.create()
    await session.aclose()
    await session.aclose()
    with pytest.raises(SessionClosed):
        await session.append(user("a"))
