"""``/goal``: show, set or end the goal of the session."""

from __future__ import annotations

from ..._terminal._words import one_line
from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["GOAL"]


async def _run(chat: ChatControl, text: str) -> str:
    agent = chat.agent
    match text:
        case "reached" | "dropped":
            return f"the goal was {text}" if await agent.end_goal(text) else "the session has no goal"
    if text:
        await agent.set_goal(text)
    return f"the goal is: {one_line(agent.goal)}" if agent.goal else "the session has no goal"


GOAL = RegisteredChatCommand("goal", "show, set or end the goal of the session", _run, "[GOAL]")
