"""``/new``: start a new session."""

from __future__ import annotations

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["NEW"]


async def _run(chat: ChatControl, _: str) -> str:
    return f"session {await chat.agent.new_session()}"


NEW = RegisteredChatCommand("new", "start a new session", _run)
