"""``/models``: list the available models."""

from __future__ import annotations

from typing import Any

from ..._terminal._tables import format_table
from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["MODELS"]


async def _run(chat: ChatControl, text: str) -> str:
    found: dict[str, Any] = await chat.agent.host.op("llm.models", {})
    rows = [
        [one["name"], one["context_window"] or ""] for one in found["models"] if text.lower() in one["name"].lower()
    ]
    return format_table(["model", "context"], rows) if rows else "no models found; see `sideband models list`"


MODELS = RegisteredChatCommand("models", "list the available models", _run, "[TEXT]")
