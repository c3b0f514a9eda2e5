"""Group commit: concurrent tasks share work that covers everything done before it began, such as a sync to disk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
from attrs import define, field


@define(eq=False)
class _Round:
    """One run of the work.

    Attributes:
        ended: set when it has ended.
        complete: whether it has succeeded. Otherwise it has failed, or the task that led it was cancelled.
    """

    ended: anyio.Event = field(factory=anyio.Event)
    complete: bool = False


@define(eq=False)
class GroupCommit:
    """Lets concurrent tasks of one event loop share work, so that each waits for at most two runs of it.

    Args:
        work: does the work for everything that was done before it is called. It runs in one task at a time.

    Example:
        >>> async def sync():
        ...     await anyio.to_thread.run_sync(os.fdatasync, descriptor)
        >>> commit = GroupCommit(sync)
        >>> async def write(data):
        ...     os.write(descriptor, data)
        ...     await commit.wait()
    """

    _work: Callable[[], Awaitable[None]]
    _running: _Round | None = field(default=None, init=False)
    _next: _Round | None = field(default=None, init=False)

    async def wait(self) -> None:
        """Return when a run of the work that began after the call has succeeded.

        If none is running, the calling task starts one. Otherwise it waits for the next one, which the first waiting
        task starts. Each task is therefore woken only once. If a run fails, its task gets the error, and each of the
        others tries again.
        """
        while True:
            if self._next is not None:
                round_ = self._next
                await round_.ended.wait()
            elif self._running is None:
                round_ = await self._lead(_Round())
            else:
                round_ = await self._lead_after(self._running)
            if round_.complete:
                return

    async def _lead_after(self, running: _Round) -> _Round:
        round_ = self._next = _Round()
        try:
            await running.ended.wait()
        except BaseException:
            round_.ended.set()  # cancelled: wake the other waiters, one of which leads
            raise
        finally:
            self._next = None
        return await self._lead(round_)

    async def _lead(self, round_: _Round) -> _Round:
        self._running = round_
        try:
            await self._work()
            round_.complete = True
        finally:
            self._running = None
            round_.ended.set()
        return round_
