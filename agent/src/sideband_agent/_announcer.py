"""Emit observe events to plugins."""

from __future__ import annotations

from attrs import define, field
from sideband.hooks import HookRegistry, MessageEnd, MessageStart, ObserveEvent
from sideband.messages import Message, to_data


@define(eq=False)
class Announcer:
    """An emitter of observe events.

    Args:
        hooks: the agent's hooks.
    """

    hooks: HookRegistry = field(repr=False)

    async def emit(self, event: ObserveEvent) -> None:
        """Call the implementations in order. Their exceptions do not propagate."""
        await self.hooks.observe(event)

    async def emit_message(self, message: Message) -> None:
        """Emit the start and the end of a message that arrives complete."""
        await self.emit(MessageStart({"role": message.role}))
        await self.emit(MessageEnd(to_data(message)))
