"""The slash commands about sessions: where the conversation is kept, and where in it one is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sideband import UsageError

from ._agent_words import one_line
from ._chat_commands import SlashCommand
from ._output import format_table
from ._session_tree import tree_lines

if TYPE_CHECKING:
    from sideband_agent import Agent
    from sideband_agent.sessions import Entry

    from ._chat_loop import Chat

__all__ = ["session_commands"]

_SHOWN_SESSIONS = 20


def session_commands(chat: Chat, agent: Agent) -> list[SlashCommand]:
    """All of them, for one chat and its agent."""
    own = _SessionCommands(chat, agent)
    return [
        SlashCommand("session", "show the session, or go over to another one", own.session, "[ID or NAME]"),
        SlashCommand("sessions", "list sessions, the last one first", own.sessions, "[TEXT]"),
        SlashCommand("new", "begin a new session", own.new),
        SlashCommand("fork", "go on in a copy of the session, up to an entry", own.fork, "[ENTRY]"),
        SlashCommand("rewind", "take back your last messages, or all after an entry", own.rewind, "[NUMBER or ENTRY]"),
        SlashCommand("tree", "show the session with all its branches", own.tree),
        SlashCommand("label", "mark where the conversation stands", own.label, "TEXT"),
        SlashCommand("name", "name the session", own.name, "TEXT"),
        SlashCommand("export", "write the session into a new file", own.export, "[FILE]"),
    ]


class _SessionCommands:
    def __init__(self, chat: Chat, agent: Agent) -> None:
        self._chat = chat
        self._agent = agent

    async def session(self, which: str) -> str:
        if which:
            await self._agent.switch_session(which)
        session = self._agent.session
        info = session.info
        rows = [
            ["id", session.id],
            ["name", session.name or ""],
            ["folder", str(session.folder or "")],
            ["forked from", session.parent or ""],
            ["messages", str(info.messages)],
            ["first", one_line(info.first)],
        ]
        return format_table(["session", ""], [row for row in rows if row[1]], wrapped=True)

    async def sessions(self, text: str) -> str:
        found = await self._agent.sessions.list(text=text or None, limit=_SHOWN_SESSIONS)
        rows = [[info.id, info.updated[:16].replace("T", " "), info.name or one_line(info.first)] for info in found]
        return format_table(["session", "used", "name, or what was said first"], rows) if rows else "there are none"

    async def new(self, _: str) -> str:
        return f"session {await self._agent.new_session()}"

    async def fork(self, entry: str) -> str:
        before = self._agent.session.id
        return f"session {await self._agent.fork(self._entry(entry) if entry else None)}, a copy of {before}"

    async def rewind(self, where: str) -> str:
        session = self._agent.session
        if where and not where.isdecimal():
            await self._agent.rewind(self._entry(where))
            return "the conversation goes on from there; what came after it is kept, see /tree"
        said = [entry for entry in session.path() if _is_said(entry)]
        back = int(where or 1)
        if not 0 < back <= len(said):
            raise UsageError(f"there are {len(said)} messages of yours to take back", hint="/tree shows them")
        entry = said[-back]
        await self._agent.rewind(_before(session.path(), entry))
        self._chat.conversation.suggest(entry.message.text)  # type: ignore[union-attr]  # it is a message of the user
        return "what came after it is kept, see /tree"

    async def tree(self, _: str) -> str:
        return "\n".join(tree_lines(self._agent.session.tree)) or "nothing was said yet"

    async def label(self, text: str) -> str:
        said = [entry for entry in self._agent.session.path() if entry.type == "message"]
        if not said:
            raise UsageError("nothing was said yet")
        entry = said[-1].id
        await self._agent.session.label(entry, text or None)
        return f"{entry} is called `{text}`" if text else f"{entry} has no label any more"

    async def name(self, text: str) -> str:
        await self._agent.session.rename(text or None)
        return f"the session is called `{text}`" if text else "the session has no name any more"

    async def export(self, file: str) -> str:
        from anyio import to_thread
        from sideband_agent.sessions import write_file

        session = self._agent.session
        path = await to_thread.run_sync(Path(file or f"{session.id}.jsonl").expanduser)
        lines = await self._agent.sessions.export(session.id)
        await to_thread.run_sync(write_file, path, lines)
        return f"written to {path}"

    def _entry(self, text: str) -> str:
        """The id of the entry that a label or the beginning of an id means."""
        tree = self._agent.session.tree
        labelled = [entry for entry, label in tree.labels.items() if label == text]
        found = labelled or [entry.id for entry in tree.entries if entry.id.startswith(text)]
        if len(found) != 1:
            problem = "several entries begin so" if found else "there is no such entry"
            raise UsageError(f"`{text}`: {problem}", hint="/tree shows them, with their labels")
        return found[0]


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
