"""``/reload``: find skills and prompts again, or import a plugin again."""

from __future__ import annotations

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["RELOAD"]


async def _run(chat: ChatControl, name: str) -> str:
    if not name:
        await chat.agent.reload()
        return "skills, prompts and tools were loaded again"
    kind, dot, plugin = name.rpartition(".")
    records = await chat.agent.host.reload(plugin, kind=kind if dot else None)
    return "\n".join(f"reloaded {one.label} ({one.distribution} {one.version})" for one in records)


RELOAD = RegisteredChatCommand("reload", "load skills and prompts again, or a plugin", _run, "[PLUGIN]")
