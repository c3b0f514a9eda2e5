"""``/compact``: compact the conversation."""

from __future__ import annotations

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["COMPACT"]


async def _run(chat: ChatControl, instructions: str) -> str:
    before = chat.agent.context_tokens
    if not await chat.agent.compact(instructions):
        return "nothing to compact yet"
    return f"compacted from about {before:,} to {chat.agent.context_tokens:,} tokens"


COMPACT = RegisteredChatCommand("compact", "compact the conversation", _run, "[INSTRUCTIONS]")
