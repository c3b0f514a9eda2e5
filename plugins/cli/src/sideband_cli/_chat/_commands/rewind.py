"""``/rewind``: go back to before your last messages, or to an entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sideband import UsageError

from .._chat_command import ChatControl, RegisteredChatCommand
from .._entry_id import entry_id

if TYPE_CHECKING:
    from sideband_agent.sessions import Entry

__all__ = ["REWIND"]


async def _run(chat: ChatControl, where: str) -> str:
    session = chat.agent.session
    if where and not where.isdecimal():
        await chat.agent.rewind(entry_id(chat.agent, where))
        return "the conversation continues from there; /tree shows the entries after it"
    messages = [entry for entry in session.path() if _is_user_message(entry)]
    number = int(where or 1)
    if not 0 < number <= len(messages):
        raise UsageError(
            f"expected a number from 1 to {len(messages)}, your messages on this branch; got {number}",
            hint="/tree shows them",
        )
    entry = messages[-number]
    await chat.agent.rewind(_before(session.path(), entry))
    chat.frontend.suggest(entry.message.text)  # type: ignore[union-attr]  # it is a user message
    return "rewound; /tree shows the entries after it"


def _is_user_message(entry: Entry) -> bool:
    """Return whether the entry is a message typed by the user."""
    from sideband.messages import UserMessage
    from sideband_agent.sessions import MessageEntry

    return isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage) and entry.message.source == "user"


def _before(path: Sequence[Entry], message: Entry) -> str | None:
    """Return the id of the entry before a message and before the run that the message started."""
    from sideband_agent.sessions import RunEntry

    by_id = {one.id: one for one in path}
    before = message.parent
    while before is not None and isinstance(run := by_id[before], RunEntry) and run.status == "started":
        before = run.parent
    return before


REWIND = RegisteredChatCommand(
    "rewind", "go back to before your last messages, or to an entry", _run, "[NUMBER or ENTRY]"
)
