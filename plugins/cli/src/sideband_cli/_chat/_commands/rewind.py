"""``/rewind``: take back your last messages, or all after an entry."""

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
        return "the conversation goes on from there; what came after it is kept, see /tree"
    said = [entry for entry in session.path() if _is_said(entry)]
    back = int(where or 1)
    if not 0 < back <= len(said):
        raise UsageError(f"there are {len(said)} messages of yours to take back", hint="/tree shows them")
    entry = said[-back]
    await chat.agent.rewind(_before(session.path(), entry))
    chat.frontend.suggest(entry.message.text)  # type: ignore[union-attr]  # it is a message of the user
    return "what came after it is kept, see /tree"


def _is_said(entry: Entry) -> bool:
    """Whether it is a message of the user."""
    from sideband.messages import UserMessage
    from sideband_agent.sessions import MessageEntry

    return isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage) and entry.message.source == "user"


def _before(path: Sequence[Entry], said: Entry) -> str | None:
    """The entry that the conversation stood at before this was said, and before the run that it began."""
    from sideband_agent.sessions import RunEntry

    by_id = {one.id: one for one in path}
    before = said.parent
    while before is not None and isinstance(run := by_id[before], RunEntry) and run.status == "started":
        before = run.parent
    return before


REWIND = RegisteredChatCommand(
    "rewind", "take back your last messages, or all after an entry", _run, "[NUMBER or ENTRY]"
)
