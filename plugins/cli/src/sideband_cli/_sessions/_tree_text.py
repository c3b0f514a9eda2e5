"""A session as a tree of messages, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._terminal._columns import fitted
from .._terminal._words import describe_arguments, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sideband.messages import Message
    from sideband_agent.sessions import Entry, EntryTree

_ID_LENGTH = 8
_MAX_DEPTH = 12


def tree_lines(tree: EntryTree) -> list[str]:
    """Return one line for each entry with text.

    Entries on the current branch, which the model sees, are marked with ``*``, and the current position with
    ``(here)``. Other branches are indented below the entry at which they fork.

    Args:
        tree: the session.
    """
    path = tree.path()
    current = {entry.id for entry in path}
    here = next((entry.id for entry in reversed(path) if describe_entry(entry)), None)
    return [
        fitted(f"{'*' if entry.id in current else ' '} {'  ' * min(depth, _MAX_DEPTH)}{_line(tree, entry, here)}")
        for entry, depth in _in_order(tree, current)
        if describe_entry(entry)
    ]


def describe_entry(entry: Entry) -> str:
    """Return the text of an entry on one line; an empty string for entries without text."""
    from sideband_agent.sessions import BranchSummaryEntry, CompactionEntry, CustomMessageEntry, MessageEntry

    if isinstance(entry, CompactionEntry):
        return f"summary: {one_line(entry.summary)}"
    if isinstance(entry, BranchSummaryEntry):
        return f"summary of another branch: {one_line(entry.summary)}"
    if isinstance(entry, (MessageEntry, CustomMessageEntry)):
        return _describe_message(entry.message)
    return ""


def _in_order(tree: EntryTree, current: set[str]) -> Iterator[tuple[Entry, int]]:
    """Yield all entries with their depth: after each entry its side branches, then its continuation."""
    # Not recursive: a session may be deeper than Python's stack.
    waiting = _following(tree, None, 0, current)
    while waiting:
        entry, depth = waiting.pop()
        yield entry, depth
        waiting += _following(tree, entry.id, depth, current)


def _following(tree: EntryTree, entry: str | None, depth: int, current: set[str]) -> list[tuple[Entry, int]]:
    """Return the children of an entry with their depth, in reverse order of output."""
    children = tree.children(entry)
    if not children:
        return []
    onward = next((child for child in children if child.id in current), children[-1])
    return [(onward, depth), *((child, depth + 1) for child in reversed(children) if child is not onward)]


def _line(tree: EntryTree, entry: Entry, here: str | None) -> str:
    label = f" [{one_line(tree.labels[entry.id])}]" if entry.id in tree.labels else ""
    mark = " (here)" if entry.id == here else ""
    return f"{one_line(entry.id)[:_ID_LENGTH]}{label}{mark} {describe_entry(entry)}"


def _describe_message(message: Message) -> str:
    from sideband.messages import AssistantMessage, ToolResultMessage

    if isinstance(message, ToolResultMessage):
        return f"{one_line(message.tool)}: {one_line(message.text)}"
    if isinstance(message, AssistantMessage):
        calls = [f"{one_line(call.name)} {describe_arguments(call.arguments)}".rstrip() for call in message.tool_calls]
        return f"model: {' | '.join(filter(None, [one_line(message.text), *calls]))}"
    return f"{one_line(message.source)}: {one_line(message.text)}"
