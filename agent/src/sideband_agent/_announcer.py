"""Tells plugins what happens."""

from __future__ import annotations

from attrs import define, field
from sideband.hooks import HookRegistry, MessageEnd, MessageStart, ObserveEvent
from sideband.messages import Message, to_data


@define(eq=False)
class Announcer:
    """Emits observe events, each once.

    Args:
        hooks: the agent's.
    """

    hooks: HookRegistry = field(repr=False)

    async def tell(self, event: ObserveEvent) -> None:
        """Tell everybody, in order. Nothing that they raise comes back."""
        await self.hooks.observe(event)

    async def tell_message(self, message: Message) -> None:
        """Tell of a message that arrives as a whole."""
        await self.tell(MessageStart({"role": message.role}))
        await self.tell(MessageEnd(to_data(message)))
