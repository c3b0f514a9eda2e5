"""``/export``: write the session to a new file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from anyio import to_thread

from ..._sessions._session_html import session_html
from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["EXPORT"]


async def _run(chat: ChatControl, file: str) -> str:
    from sideband_agent.sessions import write_file

    session = chat.agent.session
    path = await to_thread.run_sync(Path(file or f"{session.id}.jsonl").expanduser)
    lines: Iterable[str]
    if path.suffix.lower() in (".html", ".htm"):
        tree = await chat.agent.sessions.read(session.id)
        lines = (f"{line}\n" for line in session_html(tree, tree.path()))
    else:
        lines = await chat.agent.sessions.export(session.id)
    await to_thread.run_sync(write_file, path, lines)
    return f"written to {path}"


EXPORT = RegisteredChatCommand("export", "write the session to a new file, as JSON lines or HTML", _run, "[FILE]")
