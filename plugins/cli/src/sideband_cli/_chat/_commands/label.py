"""``/label``: mark where the conversation stands."""

from __future__ import annotations

from sideband import UsageError

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["LABEL"]


async def _run(chat: ChatControl, text: str) -> str:
    said = [entry for entry in chat.agent.session.path() if entry.type == "message"]
    if not said:
        raise UsageError("nothing was said yet")
    entry = said[-1].id
    await chat.agent.session.label(entry, text or None)
    return f"{entry} is called `{text}`" if text else f"{entry} has no label any more"


LABEL = RegisteredChatCommand("label", "mark where the conversation stands", _run, "TEXT")
