"""Run an async function once for all concurrent callers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

T = TypeVar("T")


class Once(Generic[T]):
    """Runs ``work`` in a task group on the first request, and shares its result with all callers.

    The work runs in the task group, not in the first caller's task: if that caller is cancelled, the others still get
    the result. If the work raises, each caller gets the error.

    Args:
        work: the async function.
        abandoned: the error for waiting callers if the task group is cancelled before the work is done.
    """

    def __init__(self, work: Callable[[], Awaitable[T]], *, abandoned: Exception) -> None:
        self._work = work
        self._abandoned = abandoned
        self._settled: anyio.Event | None = None
        self._answers: list[T] = []
        self._error: Exception | None = None

    @classmethod
    def done(cls, answer: T) -> Once[T]:
        """Return one whose work is done."""

        async def work() -> T:
            return answer

        one = cls(work, abandoned=RuntimeError("its work is done"))
        one._settled = anyio.Event()
        one._settled.set()
        one._answers.append(answer)
        return one

    @property
    def answer(self) -> T | None:
        """The result of the work, if it has succeeded."""
        return self._answers[0] if self._answers else None

    async def get(self, tasks: TaskGroup) -> T:
        """Return the result of the work, which is started in ``tasks`` on the first call."""
        if self._settled is None:
            self._settled = anyio.Event()
            tasks.start_soon(self._run, self._settled)
        if not self._settled.is_set():
            await self._settled.wait()
        if self._answers:
            return self._answers[0]
        raise (self._error or self._abandoned).with_traceback(None)

    async def wait(self) -> None:
        """Wait until the work has ended, if it was requested."""
        if self._settled is not None:
            await self._settled.wait()

    async def _run(self, settled: anyio.Event) -> None:
        try:
            self._answers.append(await self._work())
        except Exception as error:  # noqa: BLE001  raised again for each caller
            self._error = error
        finally:
            settled.set()
