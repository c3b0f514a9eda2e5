import pytest
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st
from sideband.messages import AssistantMessage, ToolCallPart, ToolResultMessage, UserMessage
from sideband.settings._agent import CompactionSettings
from sideband_agent._compaction._preparation import carried_requests, fresh_messages, is_due, prepare, sliding_window
from sideband_agent._history._repair import repair
from sideband_agent._history._tokens import context_tokens, estimate
from sideband_agent.sessions import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    MessageEntry,
    ModelEntry,
    RunEntry,
    SessionTree,
)
from sideband_agent.sessions._format._header import SessionHeader

SETTINGS = CompactionSettings(reserve=200, keep=100)
WINDOW = 800


def user(text="hello", tokens=1, **fields):
    return UserMessage(content=text.ljust(tokens * 4, "."), **fields)


def said(text="done", tokens=1, **fields):
    return AssistantMessage(content=text.ljust(tokens * 4, "."), **fields)


def asks(*ids, name="read", **arguments):
    calls = tuple(ToolCallPart(id=one, name=name, arguments=arguments) for one in ids)
    return AssistantMessage(content=calls, stop="tool_calls")


def result(call, tokens=1, **fields):
    return ToolResultMessage(call=call, tool="read", content="x" * tokens * 4, **fields)


@define
class Conversation:
    """A session in memory; each entry's id is its number: ``e0``."""

    tree: SessionTree = field(factory=lambda: SessionTree(SessionHeader(id="0" * 16)))

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
        messages = self.tree.context().messages
        return context_tokens(messages, trusted_from=len(messages) - fresh_messages(self.tree.newest_first()))

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
def test_it_is_due_above_the_limit(tokens, settings, due):
    assert is_due(tokens, 800, CompactionSettings(**settings)) is due


def test_it_is_never_due_for_a_model_of_unknown_size():
    assert not is_due(10**9, None, CompactionSettings())


def test_the_newest_messages_are_kept(talk):
    for number in range(10):
        talk.add(user(f"question {number}", 25), said(f"answer {number}", 25))
    prepared = talk.prepare()
    assert prepared.first_kept == "e16"
    assert [one.text.rstrip(".") for one in prepared.messages[:2]] == ["question 0", "answer 0"]
    assert len(prepared.messages) == 16
    assert prepared.turn_prefix == ()
    assert prepared.carried == ()
    assert prepared.tokens_before == 500


@pytest.mark.parametrize(("keep", "first"), [(99, "e17"), (100, "e16"), (0, "e19"), (10, "e19")])
def test_as_much_is_kept_as_fits_and_at_least_the_newest_message(talk, keep, first):
    for _ in range(10):
        talk.add(user(tokens=25), said(tokens=25))
    assert talk.prepare(CompactionSettings(reserve=200, keep=keep)).first_kept == first


def test_at_most_half_of_what_a_small_window_allows_is_kept(talk):
    for _ in range(10):
        talk.add(user(tokens=25), said(tokens=25))
    assert talk.prepare(CompactionSettings(), window=400).first_kept == "e16"


@pytest.mark.parametrize("messages", [(), (user(),), (user(tokens=30), said(tokens=40))])
def test_a_short_conversation_has_nothing_to_compact(talk, messages):
    assert talk.add(*messages).prepare() is None


def test_what_was_just_compacted_is_not_compacted_again(talk):
    talk.add(user(tokens=300), said(tokens=300), user(tokens=50), said(tokens=80))
    talk.compact(talk.prepare())
    talk.follow(RunEntry(run="r", status="started")).follow(ModelEntry(model="fake:m"))
    assert talk.prepare() is None


def test_what_was_just_compacted_and_is_still_too_long_can_be_compacted_again(talk):
    talk.add(user(tokens=300), said(tokens=300), user(tokens=40), said(tokens=40))
    talk.compact(talk.prepare())
    again = talk.prepare(overflow=True)
    assert again.first_kept == "e3"
    talk.compact(again)
    assert talk.prepare(overflow=True) is None


def test_a_conversation_that_a_model_refuses_is_halved_though_it_looks_short(talk):
    talk.add(user(tokens=10), said(tokens=10), user(tokens=10), said(tokens=10))
    assert talk.prepare() is None
    assert talk.prepare(overflow=True).first_kept == "e2"


def test_calls_are_not_parted_from_their_results(talk):
    talk.add(user(tokens=300), asks("a", "b"), result("a", 60), result("b", 60), said(tokens=20))
    assert talk.prepare().first_kept == "e4"
    talk = Conversation().add(user(tokens=300), asks("a", "b"), result("a", 20), result("b", 60), said(tokens=10))
    assert talk.prepare().first_kept == "e1"


def test_a_result_that_came_late_is_kept_with_its_call(talk):
    talk.add(user(tokens=300), asks("a"), user("quick"), asks("b"), result("b"), result("a", 90), said(tokens=10))
    prepared = talk.prepare(CompactionSettings(reserve=200, keep=50))
    assert prepared.first_kept == "e6"
    assert prepared.cut_points == {"e0", "e1", "e6"}


def test_a_result_that_comes_twice_does_not_hold_everything_together(talk):
    talk.add(user(tokens=300), asks("a"), result("a"))
    for _ in range(10):
        talk.add(user(tokens=20), said(tokens=20))
    talk.add(result("a"), said(tokens=10))
    assert talk.prepare().first_kept == "e19"


def test_a_call_that_waits_for_an_approval_is_kept(talk):
    talk.add(user(tokens=300), asks("a", "b"), result("b", 200), user("what now?", 150))
    assert talk.prepare(pending={"a"}).first_kept == "e1"


def test_a_call_of_the_newest_answer_without_a_result_is_kept(talk):
    talk.add(user(tokens=300), asks("a", "b"), result("b", 200))
    assert talk.prepare().first_kept == "e1"


def test_one_that_waits_since_the_beginning_leaves_nothing_to_compact(talk):
    talk.add(asks("a"), user(tokens=300), said(tokens=300))
    assert talk.prepare(pending={"a"}) is None


def test_an_orphan_does_not_disable_compaction(talk):
    talk.add(user(tokens=20), asks("lost"), result("stray"))
    for _ in range(20):
        talk.add(user(tokens=20), said(tokens=20))
    prepared = talk.prepare()
    assert prepared.first_kept == "e38"
    talk.compact(prepared)
    assert repair(talk.messages)[1] == ()


def test_the_request_that_is_worked_on_stays_in_sight(talk):
    talk.add(user("an old question"), said("an old answer", 100), user("the request", 5))
    for number in range(20):
        talk.add(asks(f"c{number}"), result(f"c{number}", 30))
    prepared = talk.prepare()
    assert prepared.carried == ("e2",)
    assert [one.text.rstrip(".") for one in prepared.messages] == ["an old question", "an old answer"]
    assert prepared.turn_prefix[0].text.startswith("the request")
    talk.compact(prepared)
    assert [one.source for one in talk.messages[:2]] == ["summary", "user"]
    assert talk.messages[1].text.startswith("the request")


def test_what_the_user_added_meanwhile_stays_in_sight_too(talk):
    talk.add(user("old"), said("old"), user("the request"), asks("a"), result("a", 100), user("use tabs"))
    for number in range(10):
        talk.add(asks(f"c{number}"), result(f"c{number}", 30))
    assert talk.prepare().carried == ("e2", "e5")


def test_an_image_of_the_request_stays_in_sight(talk):
    image = {"type": "image", "media_type": "image/png", "data": "QUJD"}
    talk.add(
        UserMessage(content=({"type": "text", "text": "see"}, image)), asks("a"), result("a", 100), said(tokens=90)
    )
    talk.compact(talk.prepare())
    assert talk.messages[1].content[1].data == "QUJD"


def test_the_request_stays_in_sight_when_the_run_has_ended(talk):
    talk.add(user("the request", 100), said("the answer", 150))
    prepared = talk.prepare()
    assert (prepared.first_kept, prepared.carried) == ("e1", ("e0",))


def test_what_a_parent_asks_is_a_request_and_what_a_plugin_adds_is_none(talk):
    talk.add(user("task", source="agent"), said(tokens=100)).follow(CustomMessageEntry(message=user(source="memo")))
    talk.add(said(tokens=90))
    assert talk.prepare().carried == ("e0",)


def test_what_began_a_run_stays_in_sight_whoever_said_it_and_the_users_last_request_too(talk):
    talk.add(user("mine", 50), said(tokens=50), user("a plugin's", 50, source="plugin"), asks("a"), result("a", 70))
    talk.add(asks("b"), result("b", 70), said(tokens=20))
    assert talk.prepare().carried == ("e0", "e2")


def test_a_request_is_carried_through_many_compactions(talk):
    talk.add(user("the request"))
    for number in range(200):
        talk.add(asks(f"c{number}"), result(f"c{number}", 50))
        if is_due(talk.tokens(), WINDOW, SETTINGS):
            talk.compact(talk.prepare())
    assert sum(isinstance(one, CompactionEntry) for one in talk.tree.path()) > 5
    assert talk.messages[1].text == "the request"
    assert talk.tokens() < WINDOW


def test_an_earlier_summary_is_handed_on_and_not_summarised(talk):
    talk.add(user(tokens=300), said(tokens=100))
    talk.compact(talk.prepare())
    talk.add(user("new", 100), said("new", 60), said(tokens=60))
    prepared = talk.prepare()
    assert "left out" in prepared.previous_summary
    assert [one.text.rstrip(".") for one in prepared.messages] == ["done", "new", "new"][: len(prepared.messages)]


def test_a_run_that_was_cut_before_is_not_split_again(talk):
    talk.add(user("the request", 100))
    for number in range(10):
        talk.add(asks(f"c{number}"), result(f"c{number}", 30))
    talk.compact(talk.prepare())
    for number in range(10, 20):
        talk.add(asks(f"c{number}"), result(f"c{number}", 30))
    prepared = talk.prepare()
    assert prepared.turn_prefix == ()
    assert prepared.carried == ("e0",)


def test_failures_and_what_no_model_sees_are_not_summarised(talk):
    failed = AssistantMessage(content="half", stop="error", error={"code": "provider.failed"})
    talk.add(user("one", 100), failed).follow(ModelEntry(model="fake:m")).follow(BranchSummaryEntry(summary="a branch"))
    talk.add(said(tokens=95), user(tokens=5))
    assert [one.text.rstrip(".") for one in talk.prepare().messages] == ["one", "a branch"]


def test_a_first_kept_entry_that_is_gone_is_no_obstacle(talk):
    talk.add(user(tokens=100)).follow(CompactionEntry(summary="s", first_kept="gone"))
    talk.add(user(tokens=200), said(tokens=60))
    assert [estimate(one) for one in talk.prepare().messages] == [200]


def test_files_are_listed_over_all_compactions(talk):
    talk.add(user(tokens=200), asks("a", name="fs__read", path="a.txt"), result("a"))
    talk.add(asks("b", name="edit_file", path="b.txt"), result("b"), said(tokens=99))
    talk.compact(talk.prepare())
    talk.add(user(tokens=100), asks("c", name="write", file_path="a.txt"), result("c"))
    talk.add(asks("d", name="web_get", path="d.txt"), result("d"), said(tokens=99))
    files = talk.prepare().files
    assert (files.read, files.modified) == (("d.txt",), ("b.txt", "a.txt"))


def test_failed_calls_other_tools_and_strange_paths_are_not_listed(talk):
    talk.add(user(tokens=200), asks("a", path="failed"), result("a", is_error=True))
    talk.add(asks("b", name="ponder", path="pondered"), result("b"))
    talk.add(asks("c", paths=["two\nlines", 7, "x" * 9_000, "good"], text="no path"), result("c"), said(tokens=99))
    assert talk.prepare().files.read == ("good",)


def test_a_tool_that_changes_nothing_reads_whatever_its_name_says(talk):
    talk.add(user(tokens=200), asks("a", name="preview_update", path="a.txt"), result("a"), said(tokens=99))
    assert talk.prepare(read_only=["preview_update"]).files.read == ("a.txt",)


def test_the_lists_of_files_keep_the_newest(talk):
    talk.add(user(tokens=200))
    for number in range(150):
        talk.add(asks(f"c{number}", path=f"f{number}"), result(f"c{number}"))
    read = talk.add(said(tokens=99)).prepare().files.read
    assert len(read) == 100
    assert read[-1] == "f149"


def test_a_window_does_not_pile_up_notes(talk):
    talk.add(user(tokens=300), said(tokens=100))
    for _ in range(3):
        talk.compact(talk.prepare())
        talk.add(user(tokens=200), said(tokens=100))
    summary = sliding_window(talk.prepare().event("s")).summary
    assert summary.count("<left-out>") == 1


def test_the_event_holds_what_was_prepared(talk):
    talk.add(user("first", 200), said("x"), user("second", 100), asks("a", path="a.txt"), result("a"), said(tokens=99))
    event = talk.prepare().event("s1", "keep the names")
    assert (event.session, event.first_kept, event.instructions) == ("s1", "e5", "keep the names")
    assert [one["role"] for one in event.messages] == ["user", "assistant"]
    assert [one["role"] for one in event.turn_prefix] == ["user", "assistant", "tool"]
    assert event.read_files == ("a.txt",)


def test_requests_are_found_for_another_cut(talk):
    talk.add(user("one"), said(), user("two"), asks("a"), result("a"), said(), user("three"), said())
    path = talk.tree.path()
    assert carried_requests(path, "e7") == ("e6",)
    assert carried_requests(path, "e3") == ()


@given(data=st.data())
def test_whatever_is_said_every_request_to_the_model_is_valid_and_holds_the_last_request(
    data, whole_histories, history_problems
):
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


@given(data=st.data())
def test_a_cut_parts_nothing_and_summarises_everything_before_it(data, whole_histories):
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


@given(data=st.data())
def test_damage_never_keeps_a_conversation_from_being_prepared(data, damaged_histories, history_problems):
    talk = Conversation().add(*data.draw(damaged_histories))
    prepared = talk.prepare(overflow=True)
    if prepared is not None:
        talk.compact(prepared)
    assert history_problems(repair(talk.messages)[0]) == []
