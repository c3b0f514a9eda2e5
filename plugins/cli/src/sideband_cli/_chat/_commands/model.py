"""``/model``: show the model, or use another one."""

from __future__ import annotations

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["MODEL"]


async def _run(chat: ChatControl, name: str) -> str:
    if not name:
        return chat.agent.model
    await chat.agent.select_model(name)
    return f"the model is {chat.agent.model}"


MODEL = RegisteredChatCommand("model", "show the model, or use another one", _run, "[PROVIDER:MODEL]")
