"""``/help``: list the commands."""

from __future__ import annotations

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["HELP"]


async def _run(chat: ChatControl, _: str) -> str:
    keys = (
        "A backslash at the end of a line goes on with the next one. Ctrl-C ends a run.\n"
        "What is sent while the agent works is seen before its next step."
    )
    return f"{chat.help()}\n\n{keys}"


HELP = RegisteredChatCommand("help", "list the commands", _run)
