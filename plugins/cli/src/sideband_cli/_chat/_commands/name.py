"""``/name``: name the session."""

from __future__ import annotations

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["NAME"]


async def _run(chat: ChatControl, text: str) -> str:
    await chat.agent.session.rename(text or None)
    return f"named the session `{text}`" if text else "removed the name of the session"


NAME = RegisteredChatCommand("name", "name the session", _run, "TEXT")
