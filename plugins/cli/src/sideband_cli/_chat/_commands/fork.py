"""``/fork``: continue in a copy of the session, up to an entry."""

from __future__ import annotations

from .._chat_command import ChatControl, RegisteredChatCommand
from .._entry_id import entry_id

__all__ = ["FORK"]


async def _run(chat: ChatControl, entry: str) -> str:
    before = chat.agent.session.id
    return f"session {await chat.agent.fork(entry_id(chat.agent, entry) if entry else None)}, a copy of {before}"


FORK = RegisteredChatCommand("fork", "continue in a copy of the session, up to an entry", _run, "[ENTRY]")
