"""The session that an agent has open, and how it goes over to another one: as a whole, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import anyio
from attrs import define, field
from sideband.hooks import HookRegistry, SessionBeforeFork, SessionBeforeSwitch, SessionShutdown, SessionStart, Verdict

from ._announcer import Announcer
from ._errors import AgentClosed, StructureRefused
from ._session_parts import SessionParts, SessionPartsMaker
from .sessions import Session, Sessions


@define(eq=False)
class SessionSwitcher:
    """Opens, changes and closes the session of an agent.

    Args:
        sessions: where sessions are.
        maker: makes what the agent needs for a session.
        hooks: may be against a change.
        announcer: tells of changes.
        folder: the working directory of a new session.
        channel: where its user is.
    """

    sessions: Sessions = field(repr=False)
    maker: SessionPartsMaker = field(repr=False)
    hooks: HookRegistry = field(repr=False)
    announcer: Announcer = field(repr=False)
    folder: Path
    channel: str
    _parts: SessionParts | None = field(default=None, init=False)

    @property
    def parts(self) -> SessionParts:
        """What the agent has for the session that is open.

        Raises:
            AgentClosed: none is.
        """
        if self._parts is None:
            raise AgentClosed
        return self._parts

    async def open(self, session: str | None) -> None:
        """Open the first session: a new one for ``None``."""
        self._parts = await self._made(await self._opened(session))
        reason = "startup" if session is None else "resume"
        await self.announcer.tell(SessionStart(self.parts.session.id, reason))

    async def close(self) -> None:
        """Close the session, if one is open."""
        if self._parts is not None:
            session = self._parts.session
            with anyio.CancelScope(shield=True):
                await self.announcer.tell(SessionShutdown(session.id, "quit"))
                self._parts = None
                await session.aclose()

    async def new(self) -> str:
        """Leave the session for a new one; returns its id."""
        return await self._switch(SessionBeforeSwitch("new"), None, "new")

    async def switch(self, session: str) -> str:
        """Leave the session for another one; returns its id.

        Raises:
            StructureRefused: a plugin is against it.
        """
        return await self._switch(SessionBeforeSwitch("resume", session), session, "resume")

    async def fork(self, entry: str | None, *, position: Literal["at", "before"]) -> str:
        """Leave the session for a copy of its path up to an entry; returns its id.

        Raises:
            StructureRefused: a plugin is against it.
        """
        session = self.parts.session
        await self._ask(SessionBeforeFork(session.id, entry or session.leaf or "", position), "fork the session")
        copy = await self.sessions.fork(session.id, entry, position=position)
        await self._replace(copy, "fork", target=copy.id)
        return copy.id

    async def reload(self) -> None:
        """Make what the agent has for the session anew. The session stays, and stays open."""
        session = self.parts.session
        await self._replace(session, "reload", target=session.id)

    async def _switch(self, event: SessionBeforeSwitch, session: str | None, reason: str) -> str:
        await self._ask(event, "leave the session")
        await self._replace(await self._opened(session), reason, target=session)
        return self.parts.session.id

    async def _ask(self, event: SessionBeforeSwitch | SessionBeforeFork, wish: str) -> None:
        decision = await self.hooks.decide(event)
        if decision.verdict is Verdict.DENY:
            raise StructureRefused(wish, decision.reason, decision.plugin)

    async def _replace(self, session: Session, reason: str, *, target: str | None) -> None:
        """Go over to an open session, or begin anew with this one. If that fails, nothing has changed."""
        previous = self.parts.session
        parts = await self._made(session)
        with anyio.CancelScope(shield=True):
            await self.announcer.tell(SessionShutdown(previous.id, reason, target=target))
            self._parts = parts
            if session is not previous:
                await previous.aclose()
            await self.announcer.tell(SessionStart(session.id, reason, previous=previous.id))

    async def _opened(self, session: str | None) -> Session:
        if session is None:
            return await self.sessions.create(folder=self.folder, channel=self.channel)
        return await self.sessions.open(session)

    async def _made(self, session: Session) -> SessionParts:
        """What the agent needs for a session. If it can't be had, the session is given back."""
        try:
            return await self.maker.make(session)
        except BaseException:
            if self._parts is None or session is not self._parts.session:
                with anyio.CancelScope(shield=True):
                    await session.aclose()
            raise
