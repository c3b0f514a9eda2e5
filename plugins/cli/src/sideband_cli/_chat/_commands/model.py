"""``/model``: show or change the model."""

from __future__ import annotations

from ..._agent._availability import known_model
from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["MODEL"]


async def _run(chat: ChatControl, name: str) -> str:
    if not name:
        return chat.agent.model
    await chat.agent.select_model(await known_model(chat.agent.host, name))
    return f"the model is {chat.agent.model}"


MODEL = RegisteredChatCommand("model", "show or change the model", _run, "[PROVIDER:MODEL]")
