"""Open, switch and close the session of an agent. A failed switch changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Literal

import anyio
from attrs import define, field
from sideband.hooks import (
    SessionBeforeFork,
    SessionBeforeSwitch,
    SessionBeforeTree,
    SessionShutdown,
    SessionStart,
    SessionTree,
    Verdict,
)
from sideband.tools import Tool, ToolSource

from ._errors import AgentClosed, StructureRefused
from ._session_parts import SessionParts, SessionPartsMaker
from .sessions import Session, Sessions


@define(eq=False)
class SessionSwitcher:
    """The open session of an agent, with methods to open, switch and close it.

    Args:
        sessions: the agent's sessions.
        maker: makes the parts of the agent for a session.
    """

    sessions: Sessions = field(repr=False)
    maker: SessionPartsMaker = field(repr=False)
    _parts: SessionParts | None = field(default=None, init=False)

    @property
    def parts(self) -> SessionParts:
        """The parts of the agent for the open session.

        Raises:
            AgentClosed: if no session is open.
        """
        if self._parts is None:
            raise AgentClosed
        return self._parts

    async def open(
        self, session: str | None, *, creates: bool = False, own_tools: Iterable[Tool | ToolSource] = ()
    ) -> None:
        """Open the first session.

        Args:
            session: the id or name of the session; ``None`` for a new one.
            creates: whether to create a session with this id if it does not exist.
            own_tools: the tools that the program offers.

        Raises:
            ToolRefused: if one of them cannot be offered.
        """
        is_new = session is None or (creates and not await self.sessions.exists(session))
        opened = await (self._created(session) if is_new else self._opened(session))
        parts = await self._made(opened)
        try:
            parts.tools.start()
            for one in own_tools:
                parts.tools.offer(one)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await parts.tools.close()
                await opened.aclose()
            raise
        self._parts = parts
        reason = "startup" if is_new else "resume"
        await self.maker.announcer.emit(SessionStart, self.parts.session.id, reason)

    async def close(self) -> None:
        """Close the session, if one is open."""
        if self._parts is not None:
            session = self._parts.session
            with anyio.CancelScope(shield=True):
                await self.maker.announcer.emit(SessionShutdown, session.id, "quit")
                await self._end(session)
                await self._parts.tools.close()  # sources may record effects of their end in the session
                self._parts = None
                await session.aclose()

    async def new(self) -> str:
        """Switch to a new session and return its id."""
        return await self._switch(SessionBeforeSwitch("new"), None, "new")

    async def switch(self, session: str) -> str:
        """Switch to another session and return its id.

        Raises:
            StructureRefused: if a plugin denies it.
        """
        return await self._switch(SessionBeforeSwitch("resume", session), session, "resume")

    async def fork(self, entry: str | None, *, position: Literal["at", "before"]) -> str:
        """Switch to a copy of the session's path up to an entry, and return the copy's id.

        Raises:
            StructureRefused: if a plugin denies it.
        """
        session = self.parts.session
        await self._check(SessionBeforeFork(session.id, entry or session.leaf or "", position), "fork the session")
        copy = await self.sessions.fork(session.id, entry, position=position)
        await self.parts.approval.copy_to(copy.id)
        await self._replace(copy, "fork", target=copy.id)
        return copy.id

    async def rewind(self, entry: str | None, *, summary: str) -> None:
        """Continue the session from another entry.

        Raises:
            EntryNotFound: if the session does not contain the entry.
            StructureRefused: if a plugin denies it.
        """
        session = self.parts.session
        target = session.tree.position(entry)
        if self.maker.agent.hooks.has(SessionBeforeTree.hook):
            await self._check(_before_tree(session, target, summary), "rewind the session")
        old_leaf = session.leaf
        new_leaf = await session.rewind(target, summary=summary)
        await self.maker.announcer.emit(SessionTree, session.id, new_leaf, old_leaf, new_leaf if summary else None)

    async def reload(self) -> None:
        """Rebuild the parts for the session, which stays open."""
        session = self.parts.session
        await self._replace(session, "reload", target=session.id)

    async def _switch(self, event: SessionBeforeSwitch, session: str | None, reason: str) -> str:
        await self._check(event, "leave the session")
        await self._replace(await self._opened(session), reason, target=session)
        return self.parts.session.id

    async def _check(self, event: SessionBeforeSwitch | SessionBeforeFork | SessionBeforeTree, action: str) -> None:
        decision = await self.maker.agent.hooks.decide(event)
        if decision.verdict is Verdict.DENY:
            raise StructureRefused(action, decision.reason, decision.plugin)

    async def _replace(self, session: Session, reason: str, *, target: str | None) -> None:
        """Switch to an open session, or rebuild the parts of the current one. On failure nothing changes."""
        previous = self.parts.session
        parts = await self._made(session)
        with anyio.CancelScope(shield=True):
            await self.maker.announcer.emit(SessionShutdown, previous.id, reason, target=target)
            await self.parts.tools.close()
            parts.tools.start()
            self._parts = parts
            if session is not previous:
                await self._end(previous)
                await previous.aclose()
            await self.maker.announcer.emit(SessionStart, session.id, reason, previous=previous.id)

    async def _end(self, session: Session) -> None:
        """Close what ops have left open for a session."""
        ends = self.maker.agent.hooks.session_ends
        if ends is not None:
            await ends.end(session.id)

    async def _opened(self, session: str | None) -> Session:
        if session is None:
            return await self._created()
        return await self.sessions.open(session)

    async def _created(self, session: str | None = None) -> Session:
        return await self.sessions.create(folder=self.maker.folder, channel=self.maker.channel, id=session)

    async def _made(self, session: Session) -> SessionParts:
        """Make the parts for a session. On failure, the session is closed unless it is the current one."""
        try:
            return await self.maker.make(session)
        except BaseException:
            if self._parts is None or session is not self._parts.session:
                with anyio.CancelScope(shield=True):
                    await session.aclose()
            raise


def _before_tree(session: Session, target: str | None, summary: str) -> SessionBeforeTree:
    kept = set() if target is None else {one.id for one in session.path(target)}
    left = [one.id for one in takewhile(lambda one: one.id not in kept, session.newest_first())]
    ancestor = next((one.id for one in session.newest_first() if one.id in kept), None)
    return SessionBeforeTree(session.id, target, session.leaf, ancestor, left[::-1], summary)
