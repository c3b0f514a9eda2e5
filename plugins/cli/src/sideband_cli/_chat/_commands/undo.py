"""``/undo``: undo what the last run, or the whole session, has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sideband import UsageError

from ..._terminal._columns import terminal_width
from .._chat_command import ChatControl, RegisteredChatCommand

if TYPE_CHECKING:
    from sideband_agent import Agent

__all__ = ["UNDO"]

_MARGIN = 5
_ALL = "session"


async def _run(chat: ChatControl, what: str) -> str:
    from ..._errors import UndoDeclined, UndoImpossible
    from ..._undo._session_undo import SessionUndo

    agent = chat.agent
    if what not in ("", _ALL):
        raise UsageError(
            f"expected nothing or `{_ALL}`, got `{what}`", hint="/undo without arguments undoes the last run"
        )
    if chat.is_working:
        raise UsageError("a run is in progress", hint="wait until it is done, or abort it with Ctrl-C")
    run = None if what else _last_run(agent)
    if not what and run is None:
        return "this session has no run yet"
    subject = "this session" if what else "the last run"
    undo = await SessionUndo.of(agent.host, subject, session=agent.session.id if what else None, run=run)
    if not undo.changes:
        return f"{subject} is already undone" if undo.undone else f"{subject} changed nothing"
    if not undo.is_possible:
        raise UndoImpossible(subject, undo.impossible)
    ask = chat.frontend.ask
    if ask is None:
        raise UndoDeclined(subject, asked=False)
    width = terminal_width() - _MARGIN
    if not (await ask(undo.describe(width).split("\n"), "Continue?", "y")).is_yes:
        return "nothing was undone"
    error = await undo.carry_out(agent.host)
    await agent.host.sync()
    chat.frontend.say(undo.describe_result(error))
    if error is not None:
        raise error
    return "the conversation is unchanged; /rewind goes back in it"


def _last_run(agent: Agent) -> str | None:
    from sideband_agent.sessions import RunEntry

    return next((one.run for one in reversed(agent.session.path()) if isinstance(one, RunEntry)), None)


UNDO = RegisteredChatCommand("undo", "undo what the last run, or the session, has changed", _run, f"[{_ALL}]")
