"""Writing a session: appending, going back, what models see, one writer."""

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


async def test_what_was_appended_is_there_when_the_session_is_opened_again(sessions):
    async with await sessions.create() as session:
        ids = await session.append(user("hello"), assistant("hi"))
    async with await sessions.open(session.id) as again:
        assert texts(again) == ["hello", "hi"]
        assert [entry.id for entry in again.path()] == list(ids)
        assert again.leaf == ids[1]
        assert again.notices == ()


async def test_each_entry_follows_the_one_before(sessions):
    async with await sessions.create() as session:
        first, second = await session.append(user("a"), assistant("b"))
        third = await session.append_message(UserMessage(content="c"), run="r", step="1")
        assert [entry.parent for entry in session.path()] == [None, first, second]
        assert (session.path()[-1].id, session.path()[-1].run, session.path()[-1].step) == (third, "r", "1")


async def test_an_id_has_sixteen_digits_and_a_time_is_utc(sessions):
    async with await sessions.create() as session:
        (entry,) = await session.append(user("a"))
        assert len(entry) == len(session.id) == 16
        assert session.path()[0].time.endswith("Z")


async def test_going_back_leaves_the_other_branch_where_it_is(sessions):
    async with await sessions.create() as session:
        first, second, third = await session.append(user("a"), assistant("b"), user("c"))
        assert await session.rewind(second) == second
        await session.append(user("d"))
        assert texts(session) == ["a", "b", "d"]
        assert [entry.id for entry in session.path(third)] == [first, second, third]
    async with await sessions.open(session.id) as again:
        assert texts(again) == ["a", "b", "d"]


async def test_going_back_to_the_beginning_begins_anew(sessions):
    async with await sessions.create() as session:
        await session.append(user("a"))
        assert await session.rewind(None) is None
        assert session.messages() == ()
        await session.append(user("b"))
        assert texts(session) == ["b"]
    async with await sessions.open(session.id) as again:
        assert texts(again) == ["b"]


async def test_going_back_to_where_it_was_gone_back_is_going_back_to_the_same_entry(sessions):
    async with await sessions.create() as session:
        first, _ = await session.append(user("a"), user("b"))
        await session.rewind(first)
        back = session.tree.entries[-1].id
        await session.append(user("c"))
        assert await session.rewind(back) == first
        assert texts(session) == ["a"]
        assert session.path(back) == session.path(first)


async def test_the_summary_of_a_branch_that_was_left_is_seen(sessions):
    async with await sessions.create() as session:
        first, left = await session.append(user("a"), user("b"))
        await session.rewind(first, summary="tried b")
        summary = session.messages()[-1]
        assert (summary.source, "tried b" in summary.text) == ("branch", True)
        assert isinstance(session.path()[-1], BranchSummaryEntry)
        assert session.path()[-1].from_ == left


async def test_a_compaction_replaces_what_came_before_the_first_kept(sessions):
    async with await sessions.create() as session:
        _, _, kept = await session.append(user("a"), assistant("b"), user("c"))
        await session.append(CompactionEntry(summary="a and b", first_kept=kept, tokens_before=9))
        await session.append(assistant("d"))
        summary, *rest = session.messages()
        assert (summary.source, "a and b" in summary.text) == ("summary", True)
        assert [message.text for message in rest] == ["c", "d"]
        assert len(session.context().entries) == 3
        assert len(session.path()) == 5


async def test_only_the_last_compaction_counts(sessions):
    async with await sessions.create() as session:
        _, kept = await session.append(user("a"), user("b"))
        await session.append(CompactionEntry(summary="one", first_kept=kept))
        (kept,) = await session.append(user("c"))
        await session.append(CompactionEntry(summary="two", first_kept=kept), user("d"))
        assert [text for text in texts(session) if "one" in text] == []
        assert texts(session)[1:] == ["c", "d"]


async def test_a_compaction_that_keeps_nothing_leaves_its_summary(sessions):
    async with await sessions.create() as session:
        await session.append(user("a"), CompactionEntry(summary="one"), user("b"))
        assert len(texts(session)) == 2
        assert texts(session)[1] == "b"


async def test_going_back_before_a_compaction_shows_what_was_there(sessions):
    async with await sessions.create() as session:
        first, second = await session.append(user("a"), user("b"))
        await session.append(CompactionEntry(summary="one", first_kept=second))
        await session.rewind(first)
        assert texts(session) == ["a"]
        assert session.context().compaction is None


async def test_an_answer_that_failed_is_not_seen_and_one_that_was_aborted_is(sessions):
    async with await sessions.create() as session:
        await session.append(user("a"), assistant("broken", stop="error"), assistant("half", stop="aborted"))
        assert texts(session) == ["a", "half"]


async def test_the_message_of_a_plugin_is_seen_and_its_data_is_not(sessions):
    async with await sessions.create() as session:
        await session.append_custom("state", {"n": None}, plugin="p")
        await session.append(CustomMessageEntry(plugin="p", message=UserMessage(content="note", source="p")))
        assert texts(session) == ["note"]
        assert session.path()[0].data == {"n": None}


async def test_the_model_and_the_thinking_are_those_last_chosen_on_the_path(sessions):
    async with await sessions.create() as session:
        (first, _) = await session.append(ModelEntry(model="a:1"), ThinkingEntry(level="low"))
        await session.append(ModelEntry(model="b:2"))
        assert (session.context().model, session.context().thinking) == ("b:2", "low")
        await session.rewind(first)
        assert (session.context().model, session.context().thinking) == ("a:1", None)


@pytest.mark.parametrize("status", ["started", "parked", "failed"])
async def test_a_run_that_did_not_end_is_unfinished(sessions, status):
    async with await sessions.create() as session:
        await session.append(RunEntry(run="r", status="started"), user("a"), RunEntry(run="r", status=status))
        assert session.unfinished_run().run == "r"
    async with await sessions.open(session.id) as again:
        assert again.unfinished_run().status == status


@pytest.mark.parametrize("status", ["completed", "aborted"])
async def test_a_run_that_ended_is_not_unfinished(sessions, status):
    async with await sessions.create() as session:
        await session.append(RunEntry(run="r", status="started"), RunEntry(run="r", status=status))
        assert session.unfinished_run() is None


async def test_a_run_on_another_branch_is_not_unfinished(sessions):
    async with await sessions.create() as session:
        (first, _) = await session.append(user("a"), RunEntry(run="r", status="started"))
        await session.rewind(first)
        assert session.unfinished_run() is None


async def test_the_last_label_of_an_entry_holds(sessions):
    async with await sessions.create() as session:
        one, two = await session.append(user("a"), user("b"))
        await session.label(one, "x")
        await session.label(one, "y")
        await session.label(two, "z")
        await session.label(two, None)
        assert session.tree.labels == {one: "y"}


async def test_a_session_can_be_named_and_unnamed(sessions):
    async with await sessions.create(name="one") as session:
        assert session.name == "one"
        await session.rename("two")
        assert session.name == "two"
        await session.rename(None)
        assert session.name is None


@pytest.mark.parametrize("body", [LabelEntry(target="no", label="x"), CompactionEntry(summary="s", first_kept="no")])
async def test_an_entry_that_names_a_missing_one_is_not_stored(sessions, body):
    async with await sessions.create() as session:
        with pytest.raises(EntryNotFound):
            await session.append(user("a"), body)
        assert session.path() == ()


async def test_going_back_to_a_missing_entry_changes_nothing(sessions):
    async with await sessions.create() as session:
        (first,) = await session.append(user("a"))
        with pytest.raises(EntryNotFound):
            await session.rewind("no")
        assert session.leaf == first


async def test_two_agents_of_one_process_do_not_write_the_same_session(sessions, store, tmp_path):
    async with await sessions.create() as session:
        with pytest.raises(SessionLocked):
            await sessions.open(session.id)
        with pytest.raises(SessionLocked):
            await Sessions(store, tmp_path).open(session.id)
    async with await sessions.open(session.id):
        pass


async def test_a_closed_session_is_not_written(sessions):
    session = await sessions.create()
    await session.aclose()
    await session.aclose()
    with pytest.raises(SessionClosed):
        await session.append(user("a"))
