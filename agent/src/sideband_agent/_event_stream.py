"""The events of an agent as async iterators, each with a bounded buffer of its own.

The agent never waits for a reader. One that is too slow loses its oldest unread events, and learns how many.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Self
from weakref import ref

import anyio
import anyio.lowlevel
from attrs import define, field, frozen
from sideband.hooks import HookRegistry, ObserveEvent


@frozen
class Lagged(ObserveEvent):
    """A reader of ``Agent.events`` was too slow: the events that came here were dropped. No hook has this event.

    Attributes:
        missed: the number of dropped events.

    Example:
        >>> from sideband_agent import Lagged
        >>> Lagged(3)
        Lagged(missed=3)
    """

    missed: int


@define(eq=False)
class _Buffer:
    """Unread events, at most ``unread.maxlen``. The oldest make room for new ones, and are counted."""

    unread: deque[ObserveEvent]
    _missed: int = field(default=0, init=False)
    _ended: bool = field(default=False, init=False)
    _arrived: anyio.Event | None = field(default=None, init=False)

    def put(self, event: ObserveEvent) -> None:
        if len(self.unread) == self.unread.maxlen:
            self._missed += 1
        self.unread.append(event)
        self._wake()

    def end(self) -> None:
        self._ended = True
        self._wake()

    async def get(self) -> ObserveEvent | None:
        """Remove and return the next event, or ``None`` after the end. If this is cancelled, nothing is removed."""
        await anyio.lowlevel.checkpoint_if_cancelled()
        while not self.unread:
            if self._ended:
                return None
            if self._arrived is None:
                self._arrived = anyio.Event()
            await self._arrived.wait()
        if self._missed:
            missed, self._missed = self._missed, 0
            return Lagged(missed)
        return self.unread.popleft()

    def _wake(self) -> None:
        if self._arrived is not None:
            arrived, self._arrived = self._arrived, None
            arrived.set()


class EventReader:
    """An async iterator over the events of one agent, from the moment at which ``Agent.events`` returned it.

    It ends when the agent has closed and all buffered events are read, or when the reader is closed. Leaving its
    ``async with`` block closes it, and so does dropping it. A cancelled ``__anext__`` loses no event.

    Example:
        >>> async def follow(agent: Agent) -> None:
        ...     async with agent.events() as reader:
        ...         async for event in reader:
        ...             print(event.hook)
    """

    __slots__ = ("__weakref__", "_buffer", "_leave")

    def __init__(self, buffer: _Buffer, leave: Callable[[_Buffer], None]) -> None:
        self._buffer = buffer
        self._leave = leave

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ObserveEvent:
        event = await self._buffer.get()
        if event is None:
            raise StopAsyncIteration
        return event

    def close(self) -> None:
        """Stop reading, and drop the unread events. A task that waits for an event sees the end."""
        self._buffer.unread.clear()
        self._buffer.end()
        self._leave(self._buffer)


@define(eq=False)
class EventStream:
    """The events of one agent, for any number of readers. It observes hooks only while there is something to do.

    Args:
        hooks: the agent's hooks.
        kept: the number of events to keep for later readers.
    """

    hooks: HookRegistry = field(repr=False)
    kept: int = 0
    _history: deque[ObserveEvent] | None = field(default=None, init=False, repr=False)
    _readers: list[tuple[_Buffer, ref[EventReader]]] = field(factory=list, init=False, repr=False)
    _observes: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        if checked_count("event_history", self.kept):
            self._history = deque(maxlen=self.kept)
            self._observe()

    def end(self) -> None:
        """End all readers, once they have read what is buffered."""
        for buffer, _ in self._readers:
            buffer.end()
        self._keep(())

    def read(self, size: int, history: int | None) -> EventReader:
        """Return a new reader. See ``Agent.events``."""
        checked_count("buffer", size, at_least=1)
        kept = [*(self._history or ())]
        if history is not None:
            kept = kept[max(0, len(kept) - checked_count("history", history)) :]
        buffer = _Buffer(deque(maxlen=size))
        for event in kept:
            buffer.put(event)
        reader = EventReader(buffer, self._remove)
        self._readers.append((buffer, ref(reader)))
        self._observe()
        return reader

    def _remove(self, buffer: _Buffer) -> None:
        self._keep(one for one in self._readers if one[0] is not buffer)

    def _keep(self, readers: Iterable[tuple[_Buffer, ref[EventReader]]]) -> None:
        """Keep only these readers, and observe nothing if that leaves nothing to do."""
        self._readers = [*readers]
        if self._observes and not self._readers and self._history is None:
            self._observes = False
            self.hooks.stop_listening(self._take)

    def _observe(self) -> None:
        if not self._observes:
            self._observes = True
            self.hooks.listen(self._take)

    def _take(self, event: ObserveEvent) -> None:
        if self._history is not None:
            self._history.append(event)
        dropped = False
        for buffer, reader in self._readers:
            buffer.put(event)
            dropped = dropped or reader() is None
        if dropped:  # not when the garbage collector finds it, which may happen in another thread
            self._keep(one for one in self._readers if one[1]() is not None)


def checked_count(name: str, value: int, *, at_least: int = 0) -> int:
    """Return the value of an argument that is a number of events.

    Raises:
        ValueError: if it is not an integer, or too small.
    """
    if not isinstance(value, int) or value < at_least:
        raise ValueError(f"`{name}`: expected an integer of at least {at_least}, got {value!r}")
    return value
