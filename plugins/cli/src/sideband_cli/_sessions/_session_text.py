"""Sessions as text and as data."""

from __future__ import annotations

from datetime import datetime
from textwrap import indent
from typing import TYPE_CHECKING, Any

from sideband.rendering import render

from .._terminal._tables import format_table
from .._terminal._words import describe_arguments, one_line
from ._tree_text import describe_entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sideband.messages import Message
    from sideband_agent.sessions import Entry, EntryTree, SessionInfo

_MAX_RESULT_LINES = 10


def info_data(info: SessionInfo) -> dict[str, Any]:
    """Return the summary of a session as data."""
    return info.as_dict()


def sessions_table(infos: Sequence[SessionInfo], *, width: int | None = None) -> str:
    """Format sessions as a table, by default of the width of the terminal."""
    rows = [
        [info.id, _local(info.updated), info.messages, info.name or one_line(info.first), _folder(info)]
        for info in infos
    ]
    columns = ["session", "last used", "messages", "name or first message", "folder"]
    return format_table(columns, rows, width=width) if rows else "no sessions"


def _folder(info: SessionInfo) -> str:
    return one_line(info.path.name or str(info.path)) if info.path else ""


def tree_data(tree: EntryTree, entries: Iterable[Entry]) -> dict[str, Any]:
    """Return a session and some of its entries as data."""
    return {
        **tree.header.exported(),
        "name": tree.name,
        "channel": tree.channel,
        "leaf": tree.leaf,
        "labels": dict(tree.labels),
        "notices": list(tree.notices),
        "entries": [entry.model_dump(mode="json", exclude_none=True) for entry in entries],
    }


def show_session(tree: EntryTree, path: Sequence[Entry]) -> str:
    """Format the header and messages of a session."""
    context = tree.context(path[-1].id) if path else tree.context()
    rows = [
        ["id", tree.id],
        ["name", one_line(tree.name or "")],
        ["folder", str(tree.folder or "")],
        ["forked from", tree.parent or ""],
        ["model", one_line(context.model or "")],
        ["started", _local(tree.header.time)],
    ]
    head = format_table(["session", ""], [row for row in rows if row[1]], wrapped=True)
    messages = [_entry_text(tree, entry, parts) for entry in path if (parts := entry_parts(entry)) is not None]
    return "\n\n".join([head, *(messages or ["no messages yet"])])


def entry_parts(entry: Entry) -> tuple[str, str] | None:
    """Return the author and the text of an entry; ``None`` if it has nothing to show."""
    from sideband_agent.sessions import CompactionEntry, CustomMessageEntry, MessageEntry

    if not (described := describe_entry(entry)):
        return None
    if isinstance(entry, (MessageEntry, CustomMessageEntry)):
        return _message_text(entry.message)
    if isinstance(entry, CompactionEntry):
        return "summary of the earlier conversation", entry.summary
    author, _, text = described.partition(": ")
    return author, text


def _entry_text(tree: EntryTree, entry: Entry, parts: tuple[str, str]) -> str:
    label = f" [{one_line(tree.labels[entry.id])}]" if entry.id in tree.labels else ""
    author, text = parts
    # Indented, so that no text looks like another message.
    body = indent(render(text, prose=True), "  ")
    return f"{one_line(author)} ({one_line(entry.id)}{label}):\n{body}".rstrip()


def _message_text(message: Message) -> tuple[str, str]:
    from sideband.messages import AssistantMessage, ToolResultMessage

    if isinstance(message, AssistantMessage):
        calls = [
            f"-> {one_line(call.name)} {describe_arguments(call.arguments)}".rstrip() for call in message.tool_calls
        ]
        return "model" if message.stop != "error" else "model, failed", "\n".join(filter(None, [message.text, *calls]))
    if isinstance(message, ToolResultMessage):
        return message.tool + (", failed" if message.is_error else ""), _first_lines(message.text)
    return message.source, message.text


def _first_lines(text: str) -> str:
    lines = text.splitlines()
    more = len(lines) - _MAX_RESULT_LINES
    return "\n".join([*lines[:_MAX_RESULT_LINES], *([f"… {more} more lines"] if more > 0 else [])])


def _local(time: str) -> str:
    try:
        return f"{datetime.fromisoformat(time).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):
        return one_line(time)
