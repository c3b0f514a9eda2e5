"""Tells plugins, and whoever runs the agent, what happens."""

from __future__ import annotations

import logging
from collections.abc import Callable

from attrs import define, field

from ..hooks import HookRegistry, MessageEnd, MessageStart, ObserveEvent
from ..messages import Message, to_data

__all__ = ["Announcer", "Listener"]

_log = logging.getLogger("sideband.agent")

Listener = Callable[[ObserveEvent], object]
"""Gets every event that is only told, right after the plugins. It must not block."""


@define(eq=False)
class Announcer:
    """Emits observe events, each once.

    Args:
        hooks: the agent's.
        listener: who else is told.
    """

    hooks: HookRegistry = field(repr=False)
    listener: Listener | None = field(repr=False)

    async def tell(self, event: ObserveEvent) -> None:
        """Tell the plugins, in order, then the listener. Nothing that they raise comes back."""
        await self.hooks.observe(event)
        if self.listener is None:
            return
        try:
            self.listener(event)
        except Exception as error:  # noqa: BLE001  whoever watches must not change what is watched
            _log.warning("a listener to the events of an agent failed: %s", type(error).__name__)

    async def tell_message(self, message: Message) -> None:
        """Tell of a message that arrives as a whole."""
        data = to_data(message)
        await self.tell(MessageStart({"role": message.role}))
        await self.tell(MessageEnd(data))
