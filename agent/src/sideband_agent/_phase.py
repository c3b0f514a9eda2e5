"""The phase of an agent, which does one operation at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

import anyio
import anyio.lowlevel
from attrs import define, field

from ._errors import AgentBusy


class AgentPhase(StrEnum):
    """The phase of an agent."""

    IDLE = "idle"
    TURN = "turn"
    COMPACTION = "compaction"


@define(eq=False)
class CurrentPhase:
    """The current phase of an agent. Every operation claims it first.

    Attributes:
        value: the phase.
    """

    value: AgentPhase = field(default=AgentPhase.IDLE, init=False)
    # Made by each operation: it takes 900 bytes, and most agents of a host are idle.
    _ended: anyio.Event | None = field(default=None, init=False, repr=False)

    @property
    def is_idle(self) -> bool:
        """Whether no operation is in progress."""
        return self.value is AgentPhase.IDLE

    @contextmanager
    def claim(self, action: str, phase: AgentPhase = AgentPhase.TURN) -> Iterator[None]:
        """Enter ``phase`` for a block, so that no other operation can begin. The check and the claim are atomic.

        Args:
            action: the operation, for the error message.
            phase: the phase during the block.

        Raises:
            AgentBusy: if another operation is in progress.
        """
        if not self.is_idle:
            raise AgentBusy(action, self.value)
        self.value = phase
        self._ended = ended = anyio.Event()
        try:
            yield
        finally:
            self.value = AgentPhase.IDLE
            self._ended = None
            ended.set()

    @contextmanager
    def compacting(self) -> Iterator[None]:
        """Enter the compaction phase for a block within a run."""
        before, self.value = self.value, AgentPhase.COMPACTION
        try:
            yield
        finally:
            self.value = before

    async def wait_for_idle(self) -> None:
        """Wait until the agent is idle."""
        if self._ended is None:
            await anyio.lowlevel.checkpoint()
        else:
            await self._ended.wait()
