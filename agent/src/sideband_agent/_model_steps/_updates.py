"""Emit the parts of a model's answer as they arrive, or once plugins have decided about the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field
from sideband.hooks import MessageStart, MessageUpdate

from .._announcer import Announcer


@define(eq=False)
class MessageUpdates:
    """The updates of one message.

    Args:
        announcer: emits them.
        model: the model.
        held: whether to keep them until ``release`` or ``replace``, unless the answer has tool calls: it is then not
            the last one of the run.
    """

    announcer: Announcer = field(repr=False)
    model: str
    held: bool
    _begun: bool = field(default=False, init=False)
    _kept: list[Mapping[str, Any]] = field(factory=list, init=False, repr=False)

    async def take(self, part: Mapping[str, Any]) -> None:
        """Emit or keep a part."""
        kind = part.get("type")
        if kind == "finished":
            return
        await self.begin()
        if self.held and kind == "tool_call":
            await self.release()
        if self.held:
            self._kept.append(part)
        else:
            await self.announcer.emit(MessageUpdate, part)

    async def begin(self) -> None:
        """Emit the start of the message, once."""
        if not self._begun:
            self._begun = True
            await self.announcer.emit(MessageStart, {"role": "assistant", "model": self.model})

    async def release(self) -> None:
        """Emit the parts that were kept. Further ones are emitted as they arrive."""
        self.held = False
        kept, self._kept = self._kept, []
        for part in kept:
            await self.announcer.emit(MessageUpdate, part)

    async def replace(self, text: str) -> None:
        """Emit a text instead of the text that was kept."""
        self._kept = [*(part for part in self._kept if part.get("type") != "text"), {"type": "text", "text": text}]
        await self.release()
