"""``/name``: name the session."""

from __future__ import annotations

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["NAME"]


async def _run(chat: ChatControl, text: str) -> str:
    await chat.agent.session.rename(text or None)
    return f"the session is called `{text}`" if text else "the session has no name any more"


NAME = RegisteredChatCommand("name", "name the session", _run, "TEXT")
