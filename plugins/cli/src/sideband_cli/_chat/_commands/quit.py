"""``/quit``: leave the chat."""

from __future__ import annotations

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["QUIT"]


async def _run(chat: ChatControl, _: str) -> None:
    chat.frontend.leave()


QUIT = RegisteredChatCommand("quit", "leave the chat (or press Ctrl-D)", _run)
