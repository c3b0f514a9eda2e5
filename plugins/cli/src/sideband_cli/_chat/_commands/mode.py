"""``/mode``: show or change when the user is asked about changes."""

from __future__ import annotations

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["MODE"]


async def _run(chat: ChatControl, name: str) -> str:
    if name:
        await chat.agent.select_approval_mode(name)
    mode = chat.agent.approval_mode
    return "no guard has approval modes" if mode is None else f"the approval mode is {mode}"


MODE = RegisteredChatCommand(
    "mode", "show or change when you are asked about changes", _run, "[manual|assist|semi|full|plan]"
)
