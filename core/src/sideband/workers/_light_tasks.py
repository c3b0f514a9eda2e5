"""Cheap tasks for dispatches, which are many and short.

On asyncio, a task in an anyio task group costs three times as much as a plain task. Here they are plain tasks,
supervised by one task of a group. On trio, they are tasks of the group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
from anyio.abc import TaskGroup


class LightTasks:
    """Concurrent tasks that belong to a task group.

    Args:
        group: the task group. It waits for the tasks, and an exception in a task cancels it.
        cancel: called when the group is cancelled. It must cancel the running tasks, because on asyncio the group does
            not.

    Example:
        >>> async with anyio.create_task_group() as group:
        ...     tasks = LightTasks(group, scope.cancel)
        ...     tasks.start(serve, request)
    """

    def __init__(self, group: TaskGroup, cancel: Callable[[], None]) -> None:
        self._group = group
        self._cancel = cancel
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: set[asyncio.Task[None] | None] = set()
        self._error: BaseException | None = None
        self._is_over = False
        self._failed = anyio.Event()
        self._ended: anyio.Event | None = None
        if anyio.get_cancelled_exc_class() is asyncio.CancelledError:
            self._loop = asyncio.get_running_loop()
            group.start_soon(self._supervise)

    def start(self, function: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        """Run ``function(*arguments)`` in its own task."""
        if self._loop is None:
            self._group.start_soon(function, *arguments)
            return
        self._running.add(asyncio.Task(self._run(function(*arguments)), loop=self._loop))
        if self._is_over:
            self._cancel()

    async def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        # Not a done callback, which would need another iteration of the event loop.
        try:
            await coroutine
        except (asyncio.CancelledError, SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  `_supervise` raises it
            self._error = self._error or error
            self._failed.set()
        finally:
            self._running.discard(asyncio.current_task())
            if self._ended is not None and not self._running:
                self._ended.set()

    async def _supervise(self) -> None:
        try:
            await self._failed.wait()
        finally:
            self._is_over = True
            self._cancel()
            if self._running:
                self._ended = anyio.Event()
                with anyio.CancelScope(shield=True):
                    await self._ended.wait()
        if self._error is not None:
            raise self._error
