import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st
from sideband.messages import AssistantMessage, ToolCallPart, ToolResultMessage, UserMessage
from sideband.settings._agent import CompactionSettings
from sideband_agent._compaction._preparation import carried_requests, fresh_messages, is_due, prepare, sliding_window
from sideband_agent._history._repair import repair
from sideband_agent._history._tokens import TokenCount, estimate
from sideband_agent.sessions import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    EntryTree,
    MessageEntry,
    ModelEntry,
    RunEntry,
)
from sideband_agent.sessions._format._header import SessionHeader

SETTINGS = CompactionSettings(reserve=200, keep=100)
WINDOW = 800


def user(text="hello", tokens=1, **fields):
    return UserMessage(content=text.ljust(tokens * 4, "."), **fields)


def answer(text="done", tokens=1, **fields):
    return AssistantMessage(content=text.ljust(tokens * 4, "."), **fields)


def asks(*ids, name="read", **arguments):
    calls = tuple(ToolCallPart(id=one, name=name, arguments=arguments) for one in ids)
    return AssistantMessage(content=calls, stop="tool_calls")


def result(call, tokens=1, **fields):
    return ToolResultMessage(call=call, tool="read", content="x" * tokens * 4, **fields)


@define
class Conversation:
    """A session in memory; each entry's id is its number: ``e0``."""

    tree: EntryTree = field(factory=lambda: EntryTree(SessionHeader(id="0" * 16)))

    def add(self, *messages):
        for one in messages:
            self.follow(MessageEntry(message=one))
        return self

    def follow(self, entry):
        update = {"id": f"e{len(self.tree)}", "parent": self.tree.leaf}
        self.tree.follow(entry.model_copy(update=update))
        return self

    def prepare(self, settings=SETTINGS, window=WINDOW, **fields):
        return prepare(self.tree.path(), settings, window=window, tokens=self.tokens(), **fields)

    def compact(self, prepared):
        event = prepared.event("s")
        self.follow(
            CompactionEntry(
                summary=sliding_window(event).summary,
                first_kept=prepared.first_kept,
                carried=prepared.carried,
                read_files=event.read_files,
                modified_files=event.modified_files,
            )
        )

    def tokens(self):
        context = self.tree.context()
        assert context.fresh == fresh_messages(self.tree.newest_first())
        return TokenCount().of(context.messages, trusted_from=len(context.messages) - context.fresh)

    @property
    def messages(self):
        return self.tree.context().messages


@pytest.fixture
def talk():
    return Conversation()


@pytest.mark.parametrize(
    ("tokens", "settings", "due"),
    [
        (600, {"reserve": 200}, False),
        (601, {"reserve": 200}, True),
        (640, {"percent": 80}, False),
        (641, {"percent": 80}, True),
        (641, {"percent": 80, "enabled": False}, False),
        (400, {"reserve": 16_384}, False),
        (401, {"reserve": 16_384}, True),
        (800, {"percent": 100}, False),
        (800, {"reserve": 0}, False),
        (801, {"reserve": 0}, True),
    ],
)
def test_compaction_is_due_above_the_limit(tokens, settings, due):
    assert is_due(tokens, 800, CompactionSettings(**settings)) is due


def test_compaction_is_never_due_without_a_known_window():
    assert not is_due(10**9, None, CompactionSettings())


def test_newest_messages_are_kept(talk):
    for number in range(10):
        talk.add(user(f"question {number}", 25), answer(f"answer {number}", 25))
    prepared = talk.prepare()
    assert prepared.first_kept == "e16"
    assert [one.text.rstrip(".") for one in prepared.messages[:2]] == ["question 0", "answer 0"]
    assert len(prepared.messages) == 16
    assert prepared.turn_prefix == ()
    assert prepared.carried == ()
    assert prepared.tokens_before == 500


@pytest.mark.parametrize(("keep", "first"), [(99, "e17"), (100, "e16"), (0, "e19"), (10, "e19")])
def test_kept_messages_fit_the_limit_and_include_the_newest(talk, keep, first):
    for _ in range(10):
        talk.add(user(tokens=25), answer(tokens=25))
    assert talk.prepare(CompactionSettings(reserve=200, keep=keep)).first_kept == first


def test_at_most_half_of_a_small_window_is_kept(talk):
    for _ in range(10):
        talk.add(user(tokens=25), answer(tokens=25))
    assert talk.prepare(CompactionSettings(), window=400).first_kept == "e16"


@pytest.mark.parametrize("messages", [(), (user(),), (user(tokens=30), answer(tokens=40))])
def test_short_conversation_is_not_compacted(talk, messages):
    assert talk.add(*messages).prepare() is None


def test_compacted_conversation_is_not_compacted_again_without_new_messages(talk):
    talk.add(user(tokens=300), answer(tokens=300), user(tokens=50), answer(tokens=80))
    talk.compact(talk.prepare())
    talk.follow(RunEntry(run="r", status="started")).follow(ModelEntry(model="fake:m"))
    assert talk.prepare() is None


def test_overflow_compacts_again_right_after_a_compaction(talk):
    talk.add(user(tokens=300), answer(tokens=300), user(tokens=40), answer(tokens=40))
    talk.compact(talk.prepare())
    again = talk.prepare(overflow=True)
    assert again.first_kept == "e3"
    talk.compact(again)
    assert talk.prepare(overflow=True) is None


def test_overflow_halves_a_short_conversation(talk):
    talk.add(user(tokens=10), answer(tokens=10), user(tokens=10), answer(tokens=10))
    assert talk.prepare() is None
    assert talk.prepare(overflow=True).first_kept == "e2"


def test_calls_are_not_separated_from_their_results(talk):
    talk.add(user(tokens=300), asks("a", "b"), result("a", 60), result("b", 60), answer(tokens=20))
    assert talk.prepare().first_kept == "e4"
    talk = Conversation().add(user(tokens=300), asks("a", "b"), result("a", 20), result("b", 60), answer(tokens=10))
    assert talk.prepare().first_kept == "e1"


def test_late_result_is_kept_with_its_call(talk):
    talk.add(user(tokens=300), asks("a"), user("quick"), asks("b"), result("b"), result("a", 90), answer(tokens=10))
    prepared = talk.prepare(CompactionSettings(reserve=200, keep=50))
    assert prepared.first_kept == "e6"
    assert prepared.cut_points == {"e0", "e1", "e6"}


def test_second_result_of_a_call_does_not_prevent_a_cut(talk):
    talk.add(user(tokens=300), asks("a"), result("a"))
    for _ in range(10):
        talk.add(user(tokens=20), answer(tokens=20))
    talk.add(result("a"), answer(tokens=10))
    assert talk.prepare().first_kept == "e19"


def test_call_waiting_for_an_approval_is_kept(talk):
    talk.add(user(tokens=300), asks("a", "b"), result("b", 200), user("what now?", 150))
    assert talk.prepare(pending={"a"}).first_kept == "e1"


def test_unanswered_call_of_the_newest_answer_is_kept(talk):
    talk.add(user(tokens=300), asks("a", "b"), result("b", 200))
    assert talk.prepare().first_kept == "e1"


def test_call_pending_since_the_first_message_prevents_compaction(talk):
    talk.add(asks("a"), user(tokens=300), answer(tokens=300))
    assert talk.prepare(pending={"a"}) is None


def test_orphaned_call_does_not_prevent_compaction(talk):
    talk.add(user(tokens=20), asks("lost"), result("stray"))
    for _ in range(20):
        talk.add(user(tokens=20), answer(tokens=20))
    prepared = talk.prepare()
    assert prepared.first_kept == "e38"
    talk.compact(prepared)
    assert repair(talk.messages)[1] == ()


def test_current_request_stays_visible(talk):
    talk.add(user("an old question"), answer("an old answer", 100), user("the request", 5))
    for number in range(20):
        talk.add(asks(f"c{number}"), result(f"c{number}", 30))
    prepared = talk.prepare()
    assert prepared.carried == ("e2",)
    assert [one.text.rstrip(".") for one in prepared.messages] == ["an old question", "an old answer"]
    assert prepared.turn_prefix[0].text.startswith("the request")
    talk.compact(prepared)
    assert [one.source for one in talk.messages[:2]] == ["summary", "user"]
    assert talk.messages[1].text.startswith("the request")


def test_messages_added_by_the_user_during_the_run_stay_visible(talk):
    talk.add(user("old"), answer("old"), user("the request"), asks("a"), result("a", 100), user("use tabs"))
    for number in range(10):
        talk.add(asks(f"c{number}"), result(f"c{number}", 30))
    assert talk.prepare().carried == ("e2", "e5")


def test_image_of_the_request_stays_visible(talk):
    image = {"type": "image", "media_type": "image/png", "data": "QUJD"}
    talk.add(
        UserMessage(content=({"type": "text", "text": "see"}, image)), asks("a"), result("a", 100), answer(tokens=90)
    )
    talk.compact(talk.prepare())
    assert talk.messages[1].content[1].data == "QUJD"


def test_request_stays_visible_after_the_run_has_ended(talk):
    talk.add(user("the request", 100), answer("the answer", 150))
    prepared = talk.prepare()
    assert (prepared.first_kept, prepared.carried) == ("e1", ("e0",))


def test_parent_message_is_a_request_and_plugin_message_is_not(talk):
    talk.add(user("task", source="agent"), answer(tokens=100)).follow(CustomMessageEntry(message=user(source="memo")))
    talk.add(answer(tokens=90))
    assert talk.prepare().carried == ("e0",)


def test_plugin_message_that_began_the_run_and_last_user_request_stay_visible(talk):
    talk.add(user("mine", 50), answer(tokens=50), user("a plugin's", 50, source="plugin"), asks("a"), result("a", 70))
    talk.add(asks("b"), result("b", 70), answer(tokens=20))
    assert talk.prepare().carried == ("e0", "e2")


def test_request_is_carried_through_many_compactions(talk):
    talk.add(user("the request"))
    for number in range(200):
        talk.add(asks(f"c{number}"), result(f"c{number}", 50))
        if is_due(talk.tokens(), WINDOW, SETTINGS):
            talk.compact(talk.prepare())
    assert sum(isinstance(one, CompactionEntry) for one in talk.tree.path()) > 5
    assert talk.messages[1].text == "the request"
    assert talk.tokens() < WINDOW


def test_earlier_summary_is_passed_on_and_not_summarized(talk):
    talk.add(user(tokens=300), answer(tokens=100))
    talk.compact(talk.prepare())
    talk.add(user("new", 100), answer("new", 60), answer(tokens=60))
    prepared = talk.prepare()
    assert "<left-out>" in prepared.previous_summary
    assert [one.text.rstrip(".") for one in prepared.messages] == ["done", "new", "new"][: len(prepared.messages)]


def test_run_cut_by_an_earlier_compaction_is_not_split_again(talk):
    talk.add(user("the request", 100))
    for number in range(10):
        talk.add(asks(f"c{number}"), result(f"c{number}", 30))
    talk.compact(talk.prepare())
    for number in range(10, 20):
        talk.add(asks(f"c{number}"), result(f"c{number}", 30))
    prepared = talk.prepare()
    assert prepared.turn_prefix == ()
    assert prepared.carried == ("e0",)


def test_failed_answers_and_hidden_entries_are_not_summarized(talk):
    failed = AssistantMessage(content="half", stop="error", error={"code": "provider.failed"})
    talk.add(user("one", 100), failed).follow(ModelEntry(model="fake:m")).follow(BranchSummaryEntry(summary="a branch"))
    talk.add(answer(tokens=95), user(tokens=5))
    assert [one.text.rstrip(".") for one in talk.prepare().messages] == ["one", "a branch"]


def test_missing_first_kept_entry_does_not_prevent_compaction(talk):
    talk.add(user(tokens=100)).follow(CompactionEntry(summary="s", first_kept="gone"))
    talk.add(user(tokens=200), answer(tokens=60))
    assert [estimate(one) for one in talk.prepare().messages] == [200]


def test_files_are_listed_across_compactions(talk):
    talk.add(user(tokens=200), asks("a", name="fs__read", path="a.txt"), result("a"))
    talk.add(asks("b", name="edit_file", path="b.txt"), result("b"), answer(tokens=99))
    talk.compact(talk.prepare())
    talk.add(user(tokens=100), asks("c", name="write", file_path="a.txt"), result("c"))
    talk.add(asks("d", name="web_get", path="d.txt"), result("d"), answer(tokens=99))
    files = talk.prepare().files
    assert (files.read, files.modified) == (("d.txt",), ("b.txt", "a.txt"))


def test_failed_calls_other_tools_and_invalid_paths_are_not_listed(talk):
    talk.add(user(tokens=200), asks("a", path="failed"), result("a", is_error=True))
    talk.add(asks("b", name="ponder", path="pondered"), result("b"))
    talk.add(asks("c", paths=["two\nlines", 7, "x" * 9_000, "good"], text="no path"), result("c"), answer(tokens=99))
    assert talk.prepare().files.read == ("good",)


def test_read_only_tool_reads_files_whatever_its_name(talk):
    talk.add(user(tokens=200), asks("a", name="preview_update", path="a.txt"), result("a"), answer(tokens=99))
    assert talk.prepare(read_only=["preview_update"]).files.read == ("a.txt",)


def test_file_lists_keep_the_newest_paths(talk):
    talk.add(user(tokens=200))
    for number in range(150):
        talk.add(asks(f"c{number}", path=f"f{number}"), result(f"c{number}"))
    read = talk.add(answer(tokens=99)).prepare().files.read
    assert len(read) == 100
    assert read[-1] == "f149"


def test_sliding_window_keeps_one_note(talk):
    talk.add(user(tokens=300), answer(tokens=100))
    for _ in range(3):
        talk.compact(talk.prepare())
        talk.add(user(tokens=200), answer(tokens=100))
    summary = sliding_window(talk.prepare().event("s")).summary
    assert summary.count("<left-out>") == 1


def test_event_contains_the_prepared_values(talk):
    talk.add(
        user("first", 200), answer("x"), user("second", 100), asks("a", path="a.txt"), result("a"), answer(tokens=99)
    )
    event = talk.prepare().event("s1", "keep the names")
    assert (event.session, event.first_kept, event.instructions) == ("s1", "e5", "keep the names")
    assert [one["role"] for one in event.messages] == ["user", "assistant"]
    assert [one["role"] for one in event.turn_prefix] == ["user", "assistant", "tool"]
    assert event.read_files == ("a.txt",)


def test_requests_are_found_for_another_cut_point(talk):
    talk.add(user("one"), answer(), user("two"), asks("a"), result("a"), answer(), user("three"), answer())
    path = talk.tree.path()
    assert carried_requests(path, "e7") == ("e6",)
    assert carried_requests(path, "e3") == ()


@settings(max_examples=50)
@given(data=st.data())
def test_compacted_history_is_valid_and_contains_the_last_request(data, whole_histories, history_problems):
    history = data.draw(whole_histories)
    settings = CompactionSettings(reserve=data.draw(st.integers(0, 500)), keep=data.draw(st.integers(0, 500)))
    talk, request = Conversation(), None
    for index, message in enumerate(history):
        talk.add(message)
        request = message if message.role == "user" else request
        waits = message.role == "assistant" or (history[index + 1 : index + 2] and history[index + 1].role == "tool")
        if waits:
            continue
        if is_due(talk.tokens(), WINDOW, settings):
            prepared = talk.prepare(settings)
            before = talk.tokens()
            if prepared is not None:
                talk.compact(prepared)
                assert sum(map(estimate, talk.messages)) < max(before, 200) + 100
        messages, notices = repair(talk.messages)
        assert notices == ()
        assert history_problems(messages) == []
        assert request in messages


@settings(max_examples=50)
@given(data=st.data())
def test_cut_separates_no_call_and_summarizes_all_earlier_messages(data, whole_histories):
    talk = Conversation().add(*data.draw(whole_histories))
    prepared = talk.prepare(CompactionSettings(reserve=0, keep=data.draw(st.integers(0, 400))), overflow=True)
    if prepared is None:
        return
    entries = talk.tree.path()
    ids = [one.id for one in entries]
    cut = ids.index(prepared.first_kept)
    older, kept = entries[:cut], entries[cut:]
    assert (*prepared.messages, *prepared.turn_prefix) == tuple(one.message for one in older)
    calls = {call.id for one in older if one.message.role == "assistant" for call in one.message.tool_calls}
    assert not calls & {one.message.call for one in kept if one.message.role == "tool"}
    assert prepared.first_kept in prepared.cut_points


@settings(max_examples=50)
@given(data=st.data())
def test_damaged_history_can_be_compacted(data, damaged_histories, history_problems):
    talk = Conversation().add(*data.draw(damaged_histories))
    prepared = talk.prepare(overflow=True)
    if prepared is not None:
        talk.compact(prepared)
    assert history_problems(repair(talk.messages)[0]) == []
