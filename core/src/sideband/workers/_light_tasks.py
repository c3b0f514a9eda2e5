"""Tasks for what workers ask for: many of them, and short ones.

On asyncio a task of a task group costs three times what a task of the loop does. So here they are the loop's
own, held together by one task of a group, which starts none and ends when all have ended. Elsewhere the group has them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
from anyio.abc import TaskGroup


class LightTasks:
    """Runs coroutines side by side, as long as the group does.

    Args:
        group: ends when they have ended; what one of them raises ends it.
        cancel: cancels whatever of them still runs, once the group is cancelled. On asyncio nobody else does.

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
            group.start_soon(self._hold_together)

    def start(self, function: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        """Run ``function(*arguments)`` in a task of its own."""
        if self._loop is None:
            self._group.start_soon(function, *arguments)
            return
        self._running.add(asyncio.Task(self._run(function(*arguments)), loop=self._loop))
        if self._is_over:
            self._cancel()

    async def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        # Not a callback of the task: the loop would go round once more for it.
        try:
            await coroutine
        except (asyncio.CancelledError, SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  raised where the tasks are held together
            self._error = self._error or error
            self._failed.set()
        finally:
            self._running.discard(asyncio.current_task())
            if self._ended is not None and not self._running:
                self._ended.set()

    async def _hold_together(self) -> None:
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
