"""Report changes of the queues, which also code that cannot wait makes, such as ``Agent.steer``.

A change is noted at once and its event emitted soon: by the run if it made the change, otherwise by a task of the
host. One task emits at a time, so all observers see the changes in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence

import anyio
from attrs import define, field
from sideband.broker import Redaction
from sideband.hooks import HookRegistry, QueueUpdate

from ._queues import QueueChange, Queued, QueueName

_SHOWN = 20
_CLOSE_SECONDS = QueueUpdate.deadline


@define(eq=False)
class QueueChanges:
    """The changes of an agent's queues whose events are not emitted yet, if anything observes them.

    Args:
        hooks: the agent's hooks.
        redactor: removes secrets from the texts.
        start_task: runs a function in a task of the host.

    Attributes:
        events: the events.
        is_open: whether the agent is open; before, it cannot be observed.
    """

    hooks: HookRegistry = field(repr=False)
    redactor: Redaction = field(repr=False)
    start_task: Callable[[Callable[[], Awaitable[object]]], None] = field(repr=False)
    events: deque[QueueUpdate] | None = field(default=None, init=False)
    is_open: bool = field(default=False, init=False)
    _emitted: anyio.Event | None = field(default=None, init=False)  # set when the current emission ends

    async def close(self) -> None:
        """Emit the last changes, and wait for an emission in progress, but not forever."""
        self.is_open = False  # so that no further task begins to emit
        if self.events is not None:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                while self._emitted is not None:
                    await self._emitted.wait()
                await self.emit()
            self.events = None

    def note(
        self, queue: QueueName, change: QueueChange, messages: Sequence[Queued], waiting: Sequence[Queued]
    ) -> None:
        """Note a change, if a plugin or a reader observes it."""
        if not self.hooks.has(QueueUpdate.hook):
            return
        if self.events is None:
            self.events = deque()
        is_first = not self.events
        self.events.append(
            QueueUpdate(queue, change, self._texts(messages), self._texts(waiting[:_SHOWN]), len(waiting))
        )
        if is_first and self.is_open:
            self.start_task(self.emit)

    async def emit(self) -> None:
        """Emit the events of the changes noted so far, unless that is already in progress."""
        if not self.events or self._emitted is not None:
            return
        events = self.events
        self._emitted = emitted = anyio.Event()
        try:
            # What observers queue meanwhile is left to the next task: this loop must end, whatever they do.
            for _ in range(len(events)):
                await self.hooks.observe(events.popleft())
        finally:
            self._emitted = None
            emitted.set()
            if events and self.is_open:
                self.start_task(self.emit)

    def _texts(self, messages: Sequence[Queued]) -> tuple[str, ...]:
        return tuple([self.redactor.text(one.text) for one in messages])
