"""``/tools``: list the tools that the model may call."""

from __future__ import annotations

from ..._terminal._tables import first_sentence, format_table
from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["TOOLS"]


async def _run(chat: ChatControl, _: str) -> str:
    rows = [[one.name, first_sentence(one.description), one.source] for one in chat.agent.tools.tools]
    return format_table(["tool", "description", "source"], rows) if rows else "no tools"


TOOLS = RegisteredChatCommand("tools", "list the tools that the model may call", _run)
