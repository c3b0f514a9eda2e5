"""``/retry``: go on with a run that did not end."""

from __future__ import annotations

from sideband import UsageError

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["RETRY"]


async def _run(chat: ChatControl, _: str) -> None:
    if chat.is_working:
        raise UsageError("a run is under way already", hint="Ctrl-C ends it")
    await chat.begin(chat.agent.resume)


RETRY = RegisteredChatCommand("retry", "go on with a run that did not end", _run)
