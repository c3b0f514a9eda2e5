"""Run a plugin's ``lifespan`` in its own task, which enters and exits it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from ..contexts import OwnContext, PluginContext
from ._errors import LifespanFailed
from ._objects import describe
from ._records import PluginRecord


@define(eq=False, repr=False)
class Lifespan:
    """The ``lifespan`` of a plugin.

    Each lifespan has its own task, because cancel scopes and task groups must be entered and exited in the same task,
    properly nested. Cancelling the host does not cancel this task; the host signals it to exit instead.

    Args:
        record: the plugin.
        open: the plugin's ``lifespan``.
        context: the context that is passed to it; its ``state`` is set to the yielded value.
        ended: called with the error if the lifespan ends while the host is running.
    """

    record: PluginRecord
    _open: Callable[[PluginContext], AbstractAsyncContextManager[Any]]
    _context: OwnContext
    _ended: Callable[[LifespanFailed], None]
    _scope: anyio.CancelScope = field(factory=partial(anyio.CancelScope, shield=True), init=False)
    _entered: anyio.Event = field(factory=anyio.Event, init=False)
    _exiting: anyio.Event = field(factory=anyio.Event, init=False)
    _exited: anyio.Event = field(factory=anyio.Event, init=False)
    _error: BaseException | None = field(default=None, init=False)

    async def enter(self, tasks: TaskGroup, *, seconds: float) -> None:
        """Enter the lifespan in a task of ``tasks``.

        Raises:
            LifespanFailed: if it raised or did not yield within ``seconds``.
        """
        tasks.start_soon(self._own)
        try:
            with anyio.move_on_after(seconds):
                await self._entered.wait()
        finally:
            if not self._entered.is_set():
                self._scope.cancel()
        if not self._entered.is_set():
            raise LifespanFailed(self.record, f"did not yield within {seconds:g} s")
        if self._error is not None:
            raise LifespanFailed(self.record, f"raised {describe(self._error)}", cause=self._error) from self._error

    async def exit(self, *, seconds: float) -> None:
        """Exit the lifespan and wait until it has ended.

        Raises:
            LifespanFailed: if it raised, or was cancelled because it did not end within ``seconds``.
        """
        if self._exited.is_set():
            return
        self._exiting.set()
        with anyio.move_on_after(seconds):
            await self._exited.wait()
        if not self._exited.is_set():
            self._scope.cancel()
            raise LifespanFailed(self.record, f"did not end within {seconds:g} s and was cancelled")
        if self._error is not None:
            raise LifespanFailed(self.record, f"raised on exit: {describe(self._error)}") from self._error

    async def _own(self) -> None:
        entered = False
        with self._scope:
            try:
                async with self._open(self._context) as state:
                    entered = True
                    self._context.state = state
                    self._entered.set()
                    await self._exiting.wait()
            except (Exception, SystemExit) as error:  # noqa: BLE001  raised again by `enter` or `exit`, or reported
                self._error = error
        self._exited.set()
        self._entered.set()
        if entered and not self._exiting.is_set():
            how = f"raised {describe(self._error)}" if self._error is not None else "ended"
            self._ended(LifespanFailed(self.record, f"{how} while the host was running"))
