"""``/compact``: make the conversation shorter."""

from __future__ import annotations

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["COMPACT"]


async def _run(chat: ChatControl, instructions: str) -> str:
    before = chat.agent.context_tokens
    if not await chat.agent.compact(instructions):
        return "there is nothing to shorten yet"
    return f"shortened from about {before:,} to {chat.agent.context_tokens:,} tokens"


COMPACT = RegisteredChatCommand("compact", "make the conversation shorter", _run, "[WHAT TO KEEP]")
