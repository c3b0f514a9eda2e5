"""``/retry``: resume a run that did not complete."""

from __future__ import annotations

from sideband import UsageError

from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["RETRY"]


async def _run(chat: ChatControl, _: str) -> None:
    if chat.is_working:
        raise UsageError("a run is already in progress", hint="press Ctrl-C to abort it")
    await chat.begin(chat.agent.resume)


RETRY = RegisteredChatCommand("retry", "resume a run that did not complete", _run)
