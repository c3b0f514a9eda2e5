"""A backend made of one whose methods block: they run in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Protocol, TypeVar

import anyio
from anyio import to_thread
from anyio.from_thread import BlockingPortal
from attrs import define, field

from ._backends import Step, StoredSecret, Summary

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

    def read(self, name: str) -> StoredSecret | None:
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

    async def read(self, name: str) -> StoredSecret | None:
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
        async with self._limiter:
            return await (run_unattended(work) if self.blocking.asks else to_thread.run_sync(work))


async def run_unattended(work: Callable[[], T]) -> T:
    """Run what may wait for a person in a thread that nobody waits for: neither who cancels it, nor the program's end.

    The threads of the event loop's own pool would keep the program from ending until the person has answered.
    """
    values: list[T] = []
    errors: list[BaseException] = []
    done = anyio.Event()

    def run() -> None:
        try:
            values.append(work())
        except BaseException as error:  # noqa: BLE001  it is raised where the work was asked for
            errors.append(error)
        with suppress(RuntimeError):  # nobody waits any more
            portal.start_task_soon(done.set)

    async with BlockingPortal() as portal:
        thread = threading.Thread(target=copy_context().run, args=(run,), name="sideband-secrets", daemon=True)
        thread.start()
        await done.wait()
    if errors:
        raise errors[0]
    return values[0]
