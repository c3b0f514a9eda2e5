"""``/thinking``: show or change how much the model thinks."""

from __future__ import annotations

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["THINKING"]


async def _run(chat: ChatControl, level: str) -> str:
    if level:
        await chat.agent.select_thinking(level)
    return f"the level of thinking is {chat.agent.thinking or 'that of the provider'}"


THINKING = RegisteredChatCommand("thinking", "show or change how much the model thinks", _run, "[LEVEL]")
