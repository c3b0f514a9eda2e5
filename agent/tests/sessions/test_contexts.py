"""The context of a session, which is extended by the entries that follow instead of being read again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.messages import AssistantMessage, UserMessage
from sideband_agent.sessions import (
    BranchSummaryEntry,
    CompactionEntry,
    Entry,
    EntryTree,
    LabelEntry,
    LeafEntry,
    MessageEntry,
    ModelEntry,
    SessionHeader,
)


def new_tree():
    return EntryTree(SessionHeader(id="0123456789abcdef", time="2026-11-01T00:00:00Z"))


def add(tree: EntryTree, body: Entry, number: int) -> None:
    parent = body.target if isinstance(body, LeafEntry) else tree.leaf
    tree.follow(body.model_copy(update={"id": f"e{number}", "parent": parent, "time": "2026-11-01T00:00:00Z"}))


def talked(count):
    tree = new_tree()
    for number in range(count):
        add(tree, MessageEntry(message=UserMessage(content=f"message {number}")), number)
    return tree


STEPS = st.lists(
    st.tuples(st.sampled_from(["user", "failed", "model", "label", "rewind", "compact", "branch"]), st.integers(0, 30)),
    max_size=25,
)


def body_of(kind, at, entries):
    if kind == "model":
        return ModelEntry(model=f"a:{at}")
    if kind == "failed":
        return MessageEntry(message=AssistantMessage(content="", stop="error", error={"code": "x"}))
    if kind == "user" or not entries:
        return MessageEntry(message=UserMessage(content=f"message {at}"))
    chosen = entries[at % len(entries)]
    return {
        "label": LabelEntry(target=chosen, label=str(at)),
        "rewind": LeafEntry(target=chosen),
        "compact": CompactionEntry(summary=str(at), first_kept=chosen if at % 3 else None, carried=(entries[0],)),
        "branch": BranchSummaryEntry(from_=chosen, summary=f"branch {at}"),
    }[kind]


@given(STEPS)
def test_an_extended_context_equals_one_that_is_read_as_a_whole(steps):
    tree = new_tree()
    entries = []
    for number, (kind, at) in enumerate(steps):
        path = [one.id for one in tree.path()]
        add(tree, body_of(kind, at, path if kind == "compact" else entries), number)
        if kind != "rewind":
            entries.append(f"e{number}")
        extended = tree.context()
        if tree.leaf is not None:
            whole = new_tree()
            for entry in tree.entries:
                whole.follow(entry)
            assert extended == whole.context()


def test_entries_before_the_last_context_are_not_read_again(count_calls):
    calls = {}
    for size in (100, 1_000):
        tree = talked(size)
        tree.context()
        add(tree, MessageEntry(message=UserMessage(content="one more")), size)
        calls[size] = count_calls(tree.context)
        assert len(tree.context().messages) == size + 1
    assert calls[1_000] == calls[100], "extend the last context in `EntryTree.context` instead of walking the path"


def test_the_context_of_an_unchanged_session_is_built_once(count_calls):
    tree = talked(10)
    before = tree.context()
    assert count_calls(tree.context) < 6, "return the last context in `EntryTree.context`"
    add(tree, MessageEntry(message=UserMessage(content="one more")), 10)
    assert tree.context() != before


def test_compacted_entries_are_not_read_again(count_calls):
    tree = talked(1_000)
    add(tree, CompactionEntry(summary="long ago", first_kept="e998"), 1_000)
    assert [one.text for one in tree.context().messages[1:]] == ["message 998", "message 999"]
    assert tree.context().fresh == 0
    whole = new_tree()
    for entry in tree.entries:
        whole.follow(entry)
    assert count_calls(whole.context) < 100, "stop at the first entry that the compaction kept"


@pytest.mark.parametrize("leaf", ["e3", "e7"])
def test_the_context_of_another_entry_does_not_change_that_of_the_leaf(leaf):
    tree = talked(10)
    before = tree.context()
    assert len(tree.context(leaf).messages) == int(leaf[1:]) + 1
    assert tree.context() == before
