"""``/skills``: list the skills."""

from __future__ import annotations

from ..._terminal._tables import first_sentence, format_table
from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["SKILLS"]


async def _run(chat: ChatControl, _: str) -> str:
    found = await chat.agent.host.skills()
    rows = [[one.name, first_sentence(one.description)] for one in found.skills]
    return format_table(["skill", "description"], rows) if rows else "no skills"


SKILLS = RegisteredChatCommand("skills", "list the skills", _run)
