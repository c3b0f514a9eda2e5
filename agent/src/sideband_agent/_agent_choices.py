"""What a user chooses for the session of an agent: the model, the level of thinking and the goal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal

import anyio
from sideband.hooks import GoalUpdate, ModelSelect, ThinkingLevelSelect

from ._agent_state import AgentState
from ._announcer import Announcer
from ._choices import LONGEST_GOAL, THINKING_LEVELS, known_level
from ._errors import GoalInvalid, ThinkingUnknown
from .sessions import GoalEntry, ModelEntry, ThinkingEntry

if TYPE_CHECKING:
    from sideband import Host


class AgentChoices(AgentState):
    """The choices of a user, which are stored in the session.

    Attributes:
        host: the host of the agent.
    """

    host: Host
    _announcer: Announcer

    async def select_model(self, model: str, *, source: str = "set") -> None:
        """Use another model from now on.

        Raises:
            AgentBusy: if another operation is in progress.
        """
        with self._claim("change the model"):
            previous = self._usual_model()
            await self.session.append(ModelEntry(model=model))
            self._model = model
            await self._announcer.emit(ModelSelect, model, previous=previous, source=source)

    async def select_thinking(self, level: str, *, source: str = "set") -> None:
        """Use another level of thinking from now on. It belongs to the session, and is restored with it.

        Args:
            level: ``off``, ``low``, ``medium`` or ``high``.
            source: ``set``, or ``cycle`` if the user steps through the levels.

        Raises:
            AgentBusy: if another operation is in progress.
            ThinkingUnknown: if the level does not exist.
        """
        if known_level(level) is None:
            raise ThinkingUnknown(level, THINKING_LEVELS)
        with self._claim("change the level of thinking"):
            previous = self.thinking
            await self.session.append(ThinkingEntry(level=level))
            await self._announcer.emit(ThinkingLevelSelect, level, previous=previous, source=source)

    async def select_approval_mode(self, mode: str) -> None:
        """Use another approval mode from now on, also in a run that is in progress, and in its children.

        The mode belongs to the session: it is restored when the session is opened again, and a fork has it too. No
        model, tool or skill can select one.

        Args:
            mode: ``manual``, ``assist``, ``semi``, ``full`` or ``plan``.

        Raises:
            ApprovalModeUnknown: if the mode does not exist.
            ApprovalModeUnavailable: if there is no guard that has modes.
        """
        await self._parts.approval.select(mode)

    async def set_goal(self, goal: str) -> None:
        """Set the goal of the session, which replaces an earlier one. Each model call from now on shows it.

        The goal belongs to the session: it survives compactions, and is restored when the session is resumed or
        forked. An agent can get a goal while it is working.

        Args:
            goal: what to achieve, up to 4,000 characters.

        Raises:
            GoalInvalid: if it is empty or too long.
        """
        goal = self.host.redactor.text(goal.strip())
        if not goal:
            raise GoalInvalid("the goal is empty")
        if len(goal) > LONGEST_GOAL:
            raise GoalInvalid(f"the goal exceeds the limit of {LONGEST_GOAL:,} characters: it has {len(goal):,}")
        previous = self.goal
        await self.session.append(GoalEntry(goal=goal))
        await self._announcer.emit(GoalUpdate, self.session.id, goal, previous=previous, status="set")

    async def end_goal(self, status: Literal["reached", "dropped"] = "reached") -> bool:
        """End the goal of the session. Return whether it had one.

        Args:
            status: whether the goal was reached.

        Raises:
            GoalInvalid: if the status is another one.
        """
        if status not in ("reached", "dropped"):
            raise GoalInvalid(f"status must be `reached` or `dropped`, got `{status}`")
        previous = self.goal
        if previous is None:
            return False
        await self.session.append(GoalEntry(goal=previous, status=status))
        await self._announcer.emit(GoalUpdate, self.session.id, None, previous=previous, status=status)
        return True

    @asynccontextmanager
    async def _moving(self) -> AsyncIterator[None]:
        """Announce the level of thinking and the goal at the position to which the block moves, if they differ."""
        level, goal = self.thinking, self.goal
        yield
        await self._restored(level, goal)

    async def _restored(self, level: str | None, goal: str | None) -> None:
        with anyio.CancelScope(shield=True):
            if self.thinking != level:
                await self._announcer.emit(ThinkingLevelSelect, self.thinking, previous=level, source="restore")
            if self.goal != goal:
                await self._announcer.emit(GoalUpdate, self.session.id, self.goal, previous=goal, status="restored")
