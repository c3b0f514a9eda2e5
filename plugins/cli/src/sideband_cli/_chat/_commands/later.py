"""``/later``: send a message after the current run."""

from __future__ import annotations

from sideband import UsageError

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["LATER"]


async def _run(chat: ChatControl, text: str) -> None:
    if not text:
        raise UsageError("the message is empty", hint="write /later TEXT")
    if chat.is_working:
        chat.agent.follow_up(text)
        chat.frontend.line("queued for the end of this run")
    else:
        await chat.send(text)


LATER = RegisteredChatCommand("later", "send a message after the current run", _run, "TEXT")
