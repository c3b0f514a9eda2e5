"""``/label``: label the current position in the conversation."""

from __future__ import annotations

from sideband import UsageError

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["LABEL"]


async def _run(chat: ChatControl, text: str) -> str:
    messages = [entry for entry in chat.agent.session.path() if entry.type == "message"]
    if not messages:
        raise UsageError("the session has no messages yet")
    entry = messages[-1].id
    await chat.agent.session.label(entry, text or None)
    return f"labeled {entry} as `{text}`" if text else f"removed the label of {entry}"


LABEL = RegisteredChatCommand("label", "label the current position in the conversation", _run, "TEXT")
