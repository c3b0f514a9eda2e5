"""The state of the plugin: runs expensive work in threads, fairly between trust domains."""

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
    """Return whether processing this much data is faster than starting a thread."""
    return sum(map(len, data)) <= _QUICK


@define(eq=False)
class _Job:
    """A unit of work and its outcome."""

    work: Callable[[], Any]
    done: anyio.Event = field(factory=anyio.Event)
    result: Any = None
    error: Exception | None = None

    def run(self) -> None:
        try:
            self.result = self.work()
        except Exception as error:  # noqa: BLE001  raised again in the caller
            self.error = error
        except BaseException as error:  # noqa: BLE001  a panic of the library; it must not end unrelated work
            self.error = RuntimeError(f"the library failed with {type(error).__name__}")


@define(eq=False)
class Work:
    """Runs work in a limited number of threads, of which a trust domain gets at most half.

    The library cannot be interrupted. A cancelled caller stops waiting immediately, but the thread counts against its
    domain until it ends, so starting and cancelling work does not create more threads.

    Args:
        config: the limits.
        tasks: the task group that waits for abandoned work.
    """

    config: Config
    _tasks: TaskGroup
    memory: anyio.CapacityLimiter = field(init=False, factory=lambda: anyio.CapacityLimiter(1))
    """Held by work that needs much memory."""
    _limiter: anyio.CapacityLimiter = field(init=False)
    _domains: WeakValueDictionary[str, anyio.CapacityLimiter] = field(init=False, factory=WeakValueDictionary)

    def __attrs_post_init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(self.config.threads)

    async def run(self, ctx: OpContext, work: Callable[[], T], *, exclusive: bool = False) -> T:
        """Run ``work`` in a thread and return its result.

        Args:
            exclusive: whether to exclude other exclusive work meanwhile.
        """
        job = _Job(work)
        share = self._domains.setdefault(ctx.domain, anyio.CapacityLimiter(max(1, self.config.threads // 2)))
        # acquired on behalf of the job, since another task releases it
        await share.acquire_on_behalf_of(job)
        try:
            if exclusive:
                await self.memory.acquire_on_behalf_of(job)
        except BaseException:
            share.release_on_behalf_of(job)
            raise
        self._tasks.start_soon(self._run, job, share, exclusive)
        await job.done.wait()
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    async def _run(self, job: _Job, share: anyio.CapacityLimiter, exclusive: bool) -> None:
        try:
            await to_thread.run_sync(job.run, limiter=self._limiter)
        finally:
            if exclusive:
                self.memory.release_on_behalf_of(job)
            share.release_on_behalf_of(job)
            job.done.set()
