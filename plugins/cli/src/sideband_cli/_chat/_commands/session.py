"""``/session``: show the session, or switch to another one."""

from __future__ import annotations

from ..._terminal._tables import format_table
from ..._terminal._words import one_line
from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["SESSION"]


async def _run(chat: ChatControl, which: str) -> str:
    if which:
        await chat.agent.switch_session(which)
    session = chat.agent.session
    info = session.info
    rows = [
        ["id", session.id],
        ["name", session.name or ""],
        ["folder", str(session.folder or "")],
        ["forked from", session.parent or ""],
        ["messages", str(info.messages)],
        ["first message", one_line(info.first)],
    ]
    return format_table(["session", ""], [row for row in rows if row[1]], wrapped=True)


SESSION = RegisteredChatCommand("session", "show the session, or switch to another one", _run, "[ID or NAME]")
