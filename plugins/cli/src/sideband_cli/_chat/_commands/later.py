"""``/later``: say something once this run is done."""

from __future__ import annotations

from sideband import UsageError

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["LATER"]


async def _run(chat: ChatControl, text: str) -> None:
    if not text:
        raise UsageError("there is nothing to say", hint="/later TEXT")
    if chat.is_working:
        chat.agent.follow_up(text)
        chat.frontend.line("queued: it is said once this run is done")
    else:
        await chat.send(text)


LATER = RegisteredChatCommand("later", "say something once this run is done", _run, "TEXT")
