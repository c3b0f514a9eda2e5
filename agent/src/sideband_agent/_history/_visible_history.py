"""The history that the model sees during one run: the messages as changed by plugins, and those added since."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from operator import is_

from attrs import define, field
from sideband.hooks import Context, HookRegistry
from sideband.messages import AssistantMessage, Message, ToolCallPart, ToolResultMessage, parse_messages, to_data

from ..sessions import Session
from ._shown_skills import ShownSkills

_log = logging.getLogger("sideband.agent")


@define(eq=False)
class VisibleHistory:
    """The messages of one run.

    Args:
        session: the session that stores them.
        hooks: the agent's hooks, which may change the earlier messages.
    """

    session: Session = field(repr=False)
    hooks: HookRegistry = field(repr=False)
    _changed: tuple[Message, ...] | None = field(default=None, init=False)
    _known: int = field(default=0, init=False)
    _skills: ShownSkills = field(factory=ShownSkills, init=False)

    async def begin(self, *coming: Message) -> None:
        """Call the hook ``context``, with which plugins change what the model sees.

        Args:
            coming: messages about to be stored, which plugins see too.
        """
        stored = (*self.session.messages(), *coming)
        self._known = len(stored)
        self._changed = None
        if not self.hooks.has("context"):
            return
        before = [to_data(message) for message in stored]
        after = (await self.hooks.update(Context(before))).messages
        if list(after) == before:
            return
        try:
            self._changed = parse_messages(after)
        except ValueError as error:
            _log.warning("ignored the messages from `context` hooks: %s", error)

    def messages(self) -> tuple[Message, ...]:
        """Return the messages that the model sees now, oldest first: instructions only of active skills."""
        stored = self.session.messages()
        if self._changed is not None:
            stored = (*self._changed, *stored[self._known :])
        return self._skills.of(stored)

    def stored(self) -> Sequence[Message]:
        """Return the messages of the session, without changes by plugins."""
        return self.session.messages()


def begins_with(messages: Sequence[Message], known: Sequence[Message]) -> bool:
    """Return whether a conversation begins with these objects."""
    return len(messages) >= len(known) and all(map(is_, messages, known))


def unanswered(messages: Iterable[Message]) -> tuple[AssistantMessage, tuple[ToolCallPart, ...]] | None:
    """Return the last answer and those of its tool calls that lack a result, or ``None``."""
    answered: set[str] = set()
    for message in reversed(list(messages)):
        if isinstance(message, ToolResultMessage):
            answered.add(message.call)
        elif isinstance(message, AssistantMessage):
            missing = tuple(part for part in message.tool_calls if part.id not in answered)
            return (message, missing) if missing else None
        else:
            return None
    return None
