"""Let plugins check the last message of a run before it is stored, change its text, or request one more round."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from attrs import define, field
from sideband.broker import Redaction
from sideband.errors import SidebandError
from sideband.hooks import Answer, HookRegistry, Note
from sideband.messages import AssistantMessage, TextPart, UserMessage, to_data
from sideband.providers import ANSWER_LIMITS
from sideband.rendering import whole_characters

from ._queues import user_message
from ._run import Run
from ._spending import Spending

_LONGEST_INSTRUCTION = 100_000
"""The maximum number of characters of the instruction of one plugin: the model must be able to take it."""
_log = logging.getLogger("sideband.agent")


@define(eq=False)
class LastAnswers:
    """The hook ``answer`` of one agent's session.

    Args:
        hooks: the agent's hooks.
        spending: charges the message, and knows the remaining budget.
        redactor: removes secrets from what plugins return.
        rounds: the maximum number of further rounds in a run.
        turns: the maximum number of turns in a run.
    """

    hooks: HookRegistry = field(repr=False)
    spending: Spending = field(repr=False)
    redactor: Redaction = field(repr=False)
    rounds: int
    turns: int

    async def check(self, run: Run, message: AssistantMessage) -> Answer:
        """Pass a message through the hook."""
        left = max(0, min(self.rounds - _drafts(run), self.turns - run.turn))
        before = [to_data(one) for one in run.messages]
        return await self.hooks.update(Answer(run.id, message.text, run.source, before, left))

    def decide(self, checked: Answer, message: AssistantMessage) -> tuple[AssistantMessage, tuple[UserMessage, ...]]:
        """Return the message to store, and the instructions of a further round, if there is one.

        Args:
            checked: what plugins returned.
            message: the message of the model, which has been charged.
        """
        if checked.changed_by:
            message = self._changed(checked, message)
        instructions = tuple(filter(_is_usable, checked.instructions))
        if not instructions or not self._may_repeat(instructions, checked.rounds):
            return message, ()
        draft = message.model_copy(update={"metadata": {**(message.metadata or {}), "draft": True}})
        return draft, tuple(user_message(self.redactor.text(one.text), source=one.plugin) for one in instructions)

    def _changed(self, checked: Answer, message: AssistantMessage) -> AssistantMessage:
        if len(checked.text) > ANSWER_LIMITS.characters:
            _log.warning(
                "ignored the text of `answer` hooks (%s): it exceeds the limit of %s characters",
                *(", ".join(checked.changed_by), f"{ANSWER_LIMITS.characters:,}"),
            )
            return message
        text = TextPart(text=whole_characters(self.redactor.text(checked.text)))
        others = tuple(part for part in message.content if not isinstance(part, TextPart))
        metadata = {"changed_by": list(checked.changed_by)}
        return message.model_copy(update={"content": (*others, text), "metadata": metadata})

    def _may_repeat(self, instructions: Sequence[Note], rounds: int) -> bool:
        plugins = ", ".join(f"`{one.plugin}`" for one in instructions)
        if not rounds:
            _log.warning("ignored the request of %s for another round: no further round is permitted", plugins)
            return False
        try:
            self.spending.allowance.check("money", "tokens", "seconds")
        except SidebandError as error:
            _log.warning("ignored the request of %s for another round: %s", plugins, error.message)
            return False
        return True


def _is_usable(instruction: Note) -> bool:
    """Return whether an instruction is of a length that models take. Report it otherwise."""
    if len(instruction.text) <= _LONGEST_INSTRUCTION:
        return True
    _log.warning(
        "ignored the instruction of `%s` for another round: it exceeds the limit of %s characters",
        *(instruction.plugin, f"{_LONGEST_INSTRUCTION:,}"),
    )
    return False


def _drafts(run: Run) -> int:
    """Return the number of further rounds that plugins have requested in a run."""
    return sum(isinstance(one, AssistantMessage) and "draft" in (one.metadata or ()) for one in run.messages)
