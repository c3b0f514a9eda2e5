"""``/sessions``: list sessions, most recent first."""

from __future__ import annotations

from ..._terminal._tables import format_table
from ..._terminal._words import one_line
from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["SESSIONS"]

_SHOWN_SESSIONS = 20


async def _run(chat: ChatControl, text: str) -> str:
    found = await chat.agent.sessions.list(text=text or None, limit=_SHOWN_SESSIONS)
    rows = [[info.id, info.updated[:16].replace("T", " "), info.name or one_line(info.first)] for info in found]
    return format_table(["session", "last used", "name or first message"], rows) if rows else "no sessions"


SESSIONS = RegisteredChatCommand("sessions", "list sessions, most recent first", _run, "[TEXT]")
