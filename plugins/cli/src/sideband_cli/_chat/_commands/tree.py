"""``/tree``: show the session with all its branches."""

from __future__ import annotations

from ..._sessions._tree_text import tree_lines
from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["TREE"]


async def _run(chat: ChatControl, _: str) -> str:
    return "\n".join(tree_lines(chat.agent.session.tree)) or "no messages yet"


TREE = RegisteredChatCommand("tree", "show the session with all its branches", _run)
