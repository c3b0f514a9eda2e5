"""Work that is done once, however many ask for it at the same time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

T = TypeVar("T")


class Once(Generic[T]):
    """Runs ``work`` in a task group when it is first asked for, and gives everybody what came of it.

    The work belongs to the group, not to who asked first: when that one is cancelled, the others still get an answer.
    An error is an answer too, and is raised for each who asks.

    Args:
        work: what to do.
        abandoned: the error for those who wait when the group is cancelled before the work is done.
    """

    def __init__(self, work: Callable[[], Awaitable[T]], *, abandoned: Exception) -> None:
        self._work = work
        self._abandoned = abandoned
        self._settled: anyio.Event | None = None
        self._answers: list[T] = []
        self._error: Exception | None = None

    async def get(self, tasks: TaskGroup) -> T:
        """The answer; starts the work in ``tasks`` if nobody has yet."""
        if self._settled is None:
            self._settled = anyio.Event()
            tasks.start_soon(self._run, self._settled)
        if not self._settled.is_set():
            await self._settled.wait()
        if self._answers:
            return self._answers[0]
        raise (self._error or self._abandoned).with_traceback(None)

    async def _run(self, settled: anyio.Event) -> None:
        try:
            self._answers.append(await self._work())
        except Exception as error:  # noqa: BLE001  raised again for each who asks
            self._error = error
        finally:
            settled.set()
