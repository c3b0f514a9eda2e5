"""Emit observe events to plugins."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol

from attrs import define, field
from sideband.hooks import HookRegistry, MessageEnd, MessageStart, MessageUpdate, ObserveEvent
from sideband.messages import AssistantMessage, Message, to_data

P = ParamSpec("P")


class _Kind(Protocol[P]):
    """A class of events."""

    hook: str

    def __call__(self, *arguments: P.args, **fields: P.kwargs) -> ObserveEvent:
        """Make an event."""


@define(eq=False)
class Announcer:
    """An emitter of observe events. An event that no plugin observes is not made.

    Args:
        hooks: the agent's hooks.
    """

    hooks: HookRegistry = field(repr=False)

    async def emit(self, kind: _Kind[P], *arguments: P.args, **fields: P.kwargs) -> None:
        """Call the implementations in order, if there are any. Their exceptions do not propagate.

        Args:
            kind: the class of the event.
            arguments, fields: its arguments.
        """
        if self.hooks.has(kind.hook):
            await self.hooks.observe(kind(*arguments, **fields))

    async def emit_made(self, kind: type[ObserveEvent], make: Callable[[], ObserveEvent]) -> None:
        """Emit an event whose arguments take time to compute.

        Args:
            kind: the class of the event.
            make: makes the event.
        """
        if self.hooks.has(kind.hook):
            await self.hooks.observe(make())

    async def emit_message(self, message: Message) -> None:
        """Emit the start and the end of a message that arrives complete."""
        await self.emit(MessageStart, {"role": message.role})
        await self.emit_end(message)

    async def emit_reply(self, message: AssistantMessage) -> None:
        """Emit a message of a plugin like one of a model, with its text as one update."""
        await self.emit(MessageStart, {"role": message.role})
        await self.emit(MessageUpdate, {"type": "text", "text": message.text})
        await self.emit_end(message)

    async def emit_end(self, message: Message) -> None:
        """Emit the end of a message."""
        await self.emit_made(MessageEnd, lambda: MessageEnd(to_data(message)))
