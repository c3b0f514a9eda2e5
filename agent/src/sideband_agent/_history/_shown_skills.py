"""The instructions of skills that a model sees: those of the active ones."""

from __future__ import annotations

from typing import TypeGuard

from attrs import define, field
from sideband.active_skills import SKILL_TOOL, active_skills
from sideband.messages import Message, TextPart, ToolResultMessage

_DROPPED = "[the instructions of the skill `{}` are no longer shown here; call `skill` to read them again]"


@define(eq=False)
class ShownSkills:
    """Leaves out the instructions of skills that are no longer active. The stored messages do not change.

    It keeps the last conversation, so each message is examined once, and a message that was left out stays the same
    object.
    """

    _last: Message | None = field(default=None, init=False)
    _examined: int = field(default=0, init=False)
    _shown: list[ToolResultMessage] = field(factory=list, init=False)
    _without: dict[int, tuple[ToolResultMessage, Message]] = field(factory=dict, init=False)

    def of(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the messages that the model sees.

        Args:
            messages: the conversation, oldest first.
        """
        known = self._examined
        if known > len(messages) or (known and messages[known - 1] is not self._last):
            known, self._shown, self._without = 0, [], {}
        self._shown += [one for one in messages[known:] if _has_instructions(one)]
        self._examined, self._last = len(messages), messages[-1] if messages else None
        if len(self._shown) < 2:
            return messages
        active = {id(one) for one in active_skills(self._shown)}
        for one in self._shown:
            if id(one) not in active and id(one) not in self._without:
                self._without[id(one)] = one, _shortened(one)
        if not self._without:
            return messages
        return tuple(self._without[id(one)][1] if id(one) in self._without else one for one in messages)


def _has_instructions(message: Message) -> TypeGuard[ToolResultMessage]:
    if not isinstance(message, ToolResultMessage) or message.tool != SKILL_TOOL:
        return False
    return "skill" in message.metadata and not message.is_error


def _shortened(message: ToolResultMessage) -> Message:
    return message.model_copy(update={"content": (TextPart(text=_DROPPED.format(message.metadata["skill"])),)})
