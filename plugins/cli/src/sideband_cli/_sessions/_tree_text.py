"""A session as a tree of what was said, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._terminal._words import describe_arguments, fitted, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sideband.messages import Message
    from sideband_agent.sessions import Entry, SessionTree

_SHORT = 8
_DEEPEST = 12


def tree_lines(tree: SessionTree) -> list[str]:
    """One line for each entry that says something.

    What models see now is marked with ``*``, and where the conversation stands is said. Other branches are set in
    below the entry at which they leave it.

    Args:
        tree: the session.
    """
    path = tree.path()
    current = {entry.id for entry in path}
    stands = next((entry.id for entry in reversed(path) if described(entry)), None)
    return [
        fitted(f"{'*' if entry.id in current else ' '} {'  ' * min(depth, _DEEPEST)}{_line(tree, entry, stands)}")
        for entry, depth in _in_order(tree, current)
        if described(entry)
    ]


def described(entry: Entry) -> str:
    """What an entry says, on one line; nothing for those that only note something."""
    from sideband_agent.sessions import BranchSummaryEntry, CompactionEntry, CustomMessageEntry, MessageEntry

    if isinstance(entry, CompactionEntry):
        return f"summary: {one_line(entry.summary)}"
    if isinstance(entry, BranchSummaryEntry):
        return f"of another branch: {one_line(entry.summary)}"
    if isinstance(entry, (MessageEntry, CustomMessageEntry)):
        return _said(entry.message)
    return ""


def _in_order(tree: SessionTree, current: set[str]) -> Iterator[tuple[Entry, int]]:
    """All entries with their depth: of each, first the branches that leave there, then what goes on."""
    # Not recursive: a session may be longer than Python's stack.
    waiting = _following(tree, None, 0, current)
    while waiting:
        entry, depth = waiting.pop()
        yield entry, depth
        waiting += _following(tree, entry.id, depth, current)


def _following(tree: SessionTree, entry: str | None, depth: int, current: set[str]) -> list[tuple[Entry, int]]:
    """What follows an entry, from the last to the first to be drawn."""
    children = tree.children(entry)
    if not children:
        return []
    onward = next((child for child in children if child.id in current), children[-1])
    return [(onward, depth), *((child, depth + 1) for child in reversed(children) if child is not onward)]


def _line(tree: SessionTree, entry: Entry, stands: str | None) -> str:
    label = f" [{one_line(tree.labels[entry.id])}]" if entry.id in tree.labels else ""
    here = " (here)" if entry.id == stands else ""
    return f"{entry.id[:_SHORT]}{label}{here} {described(entry)}"


def _said(message: Message) -> str:
    from sideband.messages import AssistantMessage, ToolResultMessage

    if isinstance(message, ToolResultMessage):
        return f"{one_line(message.tool)}: {one_line(message.text)}"
    if isinstance(message, AssistantMessage):
        calls = [f"{one_line(call.name)} {describe_arguments(call.arguments)}".rstrip() for call in message.tool_calls]
        return f"model: {' | '.join(filter(None, [one_line(message.text), *calls]))}"
    return f"{one_line(message.source)}: {one_line(message.text)}"
