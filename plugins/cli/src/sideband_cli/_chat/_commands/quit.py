"""``/quit``: leave; so does Ctrl-D."""

from __future__ import annotations

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["QUIT"]


async def _run(chat: ChatControl, _: str) -> None:
    chat.frontend.leave()


QUIT = RegisteredChatCommand("quit", "leave; so does Ctrl-D", _run)
