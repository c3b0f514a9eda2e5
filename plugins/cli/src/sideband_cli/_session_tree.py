"""A session as a tree of what was said, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._agent_words import describe_arguments, fitted, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sideband.agent.sessions import Entry, SessionTree

__all__ = ["tree_lines"]

_SHORT = 8


def tree_lines(tree: SessionTree) -> list[str]:
    """One line for each entry that says something; branches are set in, and what models see now is marked with ``*``.

    Args:
        tree: the session.
    """
    current = {entry.id for entry in tree.path()}
    return [fitted(line) for line in _lines(tree, current)]


def _lines(tree: SessionTree, current: set[str]) -> Iterator[str]:
    # Not recursive: a session may be longer than Python's stack.
    waiting = [(entry, 0) for entry in reversed(tree.children(None))]
    while waiting:
        entry, depth = waiting.pop()
        said = _said(entry)
        if said:
            mark = "*" if entry.id in current else " "
            label = f" [{one_line(tree.labels[entry.id])}]" if entry.id in tree.labels else ""
            yield f"{mark} {'  ' * depth}{entry.id[:_SHORT]}{label} {said}"
        children = tree.children(entry.id)
        deeper = depth + (len(children) > 1)
        waiting += [(child, deeper) for child in reversed(children)]


def _said(entry: Entry) -> str:
    """What an entry says, on one line; nothing for those that only note something."""
    from sideband.agent.sessions import BranchSummaryEntry, CompactionEntry, MessageEntry
    from sideband.messages import AssistantMessage, ToolResultMessage

    if isinstance(entry, CompactionEntry):
        return f"summary: {one_line(entry.summary)}"
    if isinstance(entry, BranchSummaryEntry):
        return f"of another branch: {one_line(entry.summary)}"
    if not isinstance(entry, MessageEntry):
        return ""
    message = entry.message
    if isinstance(message, ToolResultMessage):
        return f"{message.tool}: {one_line(message.text)}"
    if isinstance(message, AssistantMessage):
        calls = [f"{call.name} {describe_arguments(call.arguments)}".rstrip() for call in message.tool_calls]
        return f"model: {' | '.join(filter(None, [one_line(message.text), *calls]))}"
    return f"{message.source}: {one_line(message.text)}"
