"""Adapts a blocking backend to ``Backend`` by running its methods in threads."""

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

# a keyring that waits for its user must not exhaust the shared thread pool
_THREADS = 4


class BlockingBackend(Protocol):
    """The blocking counterpart of ``Backend``. Methods may be called from several threads at once.

    Attributes:
        name: the name in the configuration.
        interactive: whether a method may wait for the user (to unlock a keyring), so that the wait must be abandoned
            when the dispatch is cancelled.
    """

    name: str
    interactive: bool

    def read(self, name: str) -> StoredSecret | None:
        """See ``Backend``."""

    def summaries(self) -> tuple[Summary, ...]:
        """Return the metadata of all secrets, sorted by name."""

    def all(self, *, ask: bool) -> tuple[StoredSecret, ...]:
        """See ``Backend``."""

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

    async def all(self, *, ask: bool) -> tuple[StoredSecret, ...]:
        """See ``Backend``."""
        return await self.run(lambda: self.blocking.all(ask=ask))

    async def change(self, name: str, step: Step) -> None:
        """See ``Backend``."""
        await self.run(lambda: self.blocking.change(name, step))

    async def run(self, work: Callable[[], T]) -> T:
        """Run other work of the blocking backend in the same way."""
        async with self._limiter:
            return await (run_abandonable(work) if self.blocking.interactive else to_thread.run_sync(work))


async def run_abandonable(work: Callable[[], T]) -> T:
    """Run work that may wait for the user in a daemon thread, so that neither cancellation nor exit waits for it.

    With the event loop's own thread pool, the process could not exit until the user has answered.
    """
    values: list[T] = []
    errors: list[BaseException] = []
    done = anyio.Event()

    def run() -> None:
        try:
            values.append(work())
        except BaseException as error:  # noqa: BLE001  raised again in the caller
            errors.append(error)
        with suppress(RuntimeError):  # the caller no longer waits
            portal.start_task_soon(done.set)

    async with BlockingPortal() as portal:
        thread = threading.Thread(target=copy_context().run, args=(run,), name="sideband-secrets", daemon=True)
        thread.start()
        await done.wait()
    if errors:
        raise errors[0]
    return values[0]
