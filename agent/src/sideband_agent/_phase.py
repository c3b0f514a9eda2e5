"""What an agent does: one thing at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

import anyio
from attrs import define, field

from ._errors import AgentBusy


class AgentPhase(StrEnum):
    """What an agent does."""

    IDLE = "idle"
    TURN = "turn"
    COMPACTION = "compaction"


@define(eq=False)
class CurrentPhase:
    """The phase that an agent is in. What begins something claims it first.

    Attributes:
        value: the phase.
    """

    value: AgentPhase = field(default=AgentPhase.IDLE, init=False)
    _idle: anyio.Event = field(init=False, repr=False)

    @_idle.default
    def _set_event(self) -> anyio.Event:
        event = anyio.Event()
        event.set()
        return event

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""
        return self.value is AgentPhase.IDLE

    @contextmanager
    def claim(self, wish: str, phase: AgentPhase = AgentPhase.TURN) -> Iterator[None]:
        """Let nothing else begin until the block ends. There is no wait between the look and the claim.

        Args:
            wish: what is going to be done, for the error.
            phase: the phase until then.

        Raises:
            AgentBusy: something else is under way.
        """
        if not self.is_idle:
            raise AgentBusy(wish, self.value)
        self.value = phase
        self._idle = anyio.Event()
        try:
            yield
        finally:
            self.value = AgentPhase.IDLE
            self._idle.set()

    @contextmanager
    def compacting(self) -> Iterator[None]:
        """The phase while a run that goes on is compacted in between."""
        before, self.value = self.value, AgentPhase.COMPACTION
        try:
            yield
        finally:
            self.value = before

    async def wait_for_idle(self) -> None:
        """Wait until nothing is under way."""
        await self._idle.wait()
