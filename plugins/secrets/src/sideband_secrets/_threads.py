"""A backend made of one whose methods block: they run in threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import anyio
from anyio import to_thread
from attrs import define, field

from ._backends import Step, Stored, Summary

__all__ = ["BlockingBackend", "ThreadedBackend"]

T = TypeVar("T")

# a keyring that waits for a person must not take threads from others
_THREADS = 4


class BlockingBackend(Protocol):
    """What ``Backend`` promises, by methods that block and may be called from several threads at once.

    Attributes:
        name: as the configuration calls it.
        asks: whether a method may wait for a person (to unlock a keyring), so that waiting for it must be given up
            when the dispatch is cancelled.
    """

    name: str
    asks: bool

    def read(self, name: str) -> Stored | None:
        """See ``Backend``."""

    def summaries(self) -> tuple[Summary, ...]:
        """All of them, by name."""

    def change(self, name: str, step: Step) -> None:
        """See ``Backend``."""


@define
class ThreadedBackend:
    """See ``Backend``."""

    blocking: BlockingBackend
    _limiter: anyio.CapacityLimiter = field(init=False, factory=lambda: anyio.CapacityLimiter(_THREADS))

    @property
    def name(self) -> str:
        """See ``Backend``."""
        return self.blocking.name

    @property
    def writable(self) -> bool:
        """See ``Backend``."""
        return True

    async def read(self, name: str) -> Stored | None:
        """See ``Backend``."""
        return await self.run(lambda: self.blocking.read(name))

    async def summaries(self, wanted: Callable[[str], bool]) -> tuple[Summary, ...]:
        """See ``Backend``."""
        return tuple(one for one in await self.run(self.blocking.summaries) if wanted(one.name))

    async def change(self, name: str, step: Step) -> None:
        """See ``Backend``."""
        await self.run(lambda: self.blocking.change(name, step))

    async def run(self, work: Callable[[], T]) -> T:
        """Run something else of the blocking one, in the same way."""
        # what asks a person is given up on cancellation: its thread ends when the person, or the keyring, answers
        return await to_thread.run_sync(work, abandon_on_cancel=self.blocking.asks, limiter=self._limiter)
