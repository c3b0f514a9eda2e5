"""The state of the plugin: runs what takes long in threads, without letting anybody keep them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup
from attrs import define, field
from sideband.ops import OpContext

from ._config import Config

T = TypeVar("T")

_QUICK = 64 * 1024


def is_quick(*data: bytes) -> bool:
    """Whether hashing or encrypting so little is done sooner than a thread would begin with it."""
    return sum(map(len, data)) <= _QUICK


@define(eq=False)
class _Job:
    """One piece of work, and what came of it."""

    work: Callable[[], Any]
    done: anyio.Event = field(factory=anyio.Event)
    result: Any = None
    error: Exception | None = None

    def run(self) -> None:
        try:
            self.result = self.work()
        except Exception as error:  # noqa: BLE001  raised again where the result is waited for
            self.error = error
        except BaseException as error:  # noqa: BLE001  how the library's own code panics; it must not end all other work
            self.error = RuntimeError(f"the library failed with {type(error).__name__}")


@define(eq=False)
class Work:
    """Threads of its own number, of which one trust domain gets half.

    The library can't be interrupted. Whoever is cancelled stops waiting at once; the thread stays counted, as that of
    its domain, until it has ended: starting and cancelling does not make more of them.

    Args:
        config: the limits.
        tasks: the task group in which what is no longer waited for ends.
    """

    config: Config
    _tasks: TaskGroup
    memory: anyio.CapacityLimiter = field(init=False, factory=lambda: anyio.CapacityLimiter(1))
    """Held by whoever needs much memory."""
    _limiter: anyio.CapacityLimiter = field(init=False)
    _domains: WeakValueDictionary[str, anyio.CapacityLimiter] = field(init=False, factory=WeakValueDictionary)

    def __attrs_post_init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(self.config.threads)

    async def run(self, ctx: OpContext, work: Callable[[], T], *, alone: bool = False) -> T:
        """The result of ``work``, which runs in a thread.

        Args:
            alone: whether no other work that is to be alone may run meanwhile.
        """
        job = _Job(work)
        share = self._domains.setdefault(ctx.domain, anyio.CapacityLimiter(max(1, self.config.threads // 2)))
        # each limiter is held on behalf of the job, since another task gives it back
        await share.acquire_on_behalf_of(job)
        try:
            if alone:
                await self.memory.acquire_on_behalf_of(job)
        except BaseException:
            share.release_on_behalf_of(job)
            raise
        self._tasks.start_soon(self._run, job, share, alone)
        await job.done.wait()
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    async def _run(self, job: _Job, share: anyio.CapacityLimiter, alone: bool) -> None:
        try:
            await to_thread.run_sync(job.run, limiter=self._limiter)
        finally:
            if alone:
                self.memory.release_on_behalf_of(job)
            share.release_on_behalf_of(job)
            job.done.set()
