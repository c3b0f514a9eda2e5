"""``/cost``: show the tokens and cost of the session."""

from __future__ import annotations

from ..._terminal._words import describe_usage
from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["COST"]


async def _run(chat: ChatControl, _: str) -> str:
    return describe_usage(chat.agent.usage)


COST = RegisteredChatCommand("cost", "show the tokens and cost of the session", _run)
