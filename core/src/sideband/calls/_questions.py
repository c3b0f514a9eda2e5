"""Ask the user about grants, each question once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
from attrs import define, evolve, field

from ..loading import SkillSpec, ToolSpec
from ..ops import Grant

GrantAsker = Callable[[SkillSpec, Grant], Awaitable[bool]]
"""Asks the user whether to grant these capabilities to a skill, and returns the answer.

The only entry in ``tools`` of the skill is the tool whose call needs them.
"""

_MAX_REFUSALS = 1_000


@define(eq=False)
class _Question:
    """A question that the user has not answered yet; ``answer`` stays ``None`` if the asking call was cancelled."""

    answered: anyio.Event = field(factory=anyio.Event)
    answer: bool | None = None


@define(eq=False)
class GrantQuestions:
    """Asks about grants: parallel calls share the answer to an equal question, and a no holds for the run.

    Questions are equal if they are about the same capabilities of the same version of a skill.

    Args:
        asker: asks the user; ``None`` if the user cannot be asked.
    """

    _asker: GrantAsker | None
    _open: dict[tuple[str, Grant], _Question] = field(factory=dict, init=False)
    _refused: dict[tuple[str, Grant, str], None] = field(factory=dict, init=False)

    async def ask(self, skill: SkillSpec, tool: ToolSpec, digest: str, missing: Grant, run: str) -> bool | None:
        """Return whether the user grants the capabilities; ``None`` if the user cannot be asked.

        Args:
            skill: the skill.
            tool: the tool whose call needs the capabilities.
            digest: the digest of the skill's content.
            missing: the capabilities.
            run: the run of the call.
        """
        if self._asker is None:
            return None
        about = (digest, missing)
        while (*about, run) not in self._refused:
            question = self._open.get(about)
            if question is not None:
                await question.answered.wait()
            else:
                question = self._open[about] = _Question()
                try:
                    question.answer = await self._asker(evolve(skill, tools=(tool,)), missing)
                finally:
                    del self._open[about]
                    question.answered.set()
            if question.answer:
                return True
            if question.answer is not None:
                self._refused[*about, run] = None
                if len(self._refused) > _MAX_REFUSALS:
                    del self._refused[next(iter(self._refused))]
        return False
