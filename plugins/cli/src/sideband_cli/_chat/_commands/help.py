"""``/help``: list the commands."""

from __future__ import annotations

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["HELP"]


async def _run(chat: ChatControl, _: str) -> str:
    keys = (
        "A backslash at the end of a line continues the message on the next line.\n"
        "A message sent while the agent is working is queued for its next step.\n"
        "!PROGRAM runs a program and shows it to the model, !!PROGRAM only to you.\n"
        "Ctrl-C aborts a run."
    )
    return f"{chat.help()}\n\n{keys}"


HELP = RegisteredChatCommand("help", "list the commands", _run)
