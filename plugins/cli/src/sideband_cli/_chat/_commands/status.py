"""``/status``: show model, session, context and cost."""

from __future__ import annotations

from ..._terminal._tables import format_table
from ..._terminal._words import describe_usage, one_line
from .._chat_command import ChatControl, RegisteredChatCommand
from .._status_line import describe_context

__all__ = ["STATUS"]


async def _run(chat: ChatControl, _: str) -> str:
    agent, session = chat.agent, chat.agent.session
    rows = [
        ["model", agent.model],
        ["thinking", agent.thinking or ""],
        ["goal", one_line(agent.goal or "")],
        ["session", f"{session.id} {one_line(session.name or '')}".rstrip()],
        ["context", describe_context(agent)],
        ["usage", describe_usage(agent.usage)],
        ["tools", str(len(agent.tools.tools))],
        ["state", "working" if chat.is_working else "idle"],
    ]
    return format_table(["", ""], [row for row in rows if row[1]]).split("\n", 2)[2]


STATUS = RegisteredChatCommand("status", "show model, session, context and cost", _run)
