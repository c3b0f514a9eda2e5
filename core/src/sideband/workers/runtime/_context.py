"""Which call is running here: tasks, callbacks, threads and executor jobs belong to the call that started them."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures.thread import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Any

MAX_IN_FLIGHT = 32
"""Dispatches of one call that wait for an answer at once; the host refuses more, so further ones wait here."""


class Slots:
    """A semaphore, first come first served, whose users may run on event loops of different threads."""

    __slots__ = ("_free", "_lock", "_waiting")

    def __init__(self, free: int) -> None:
        self._free = free
        self._lock = threading.Lock()
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> None:
        """Take a slot; wait for one if there is none."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            with self._lock:
                given = turn not in self._waiting
                if not given:
                    self._waiting.remove(turn)
            if given:
                self.release()
            raise

    def release(self) -> None:
        """Give a slot back, to whoever waited longest."""
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                loop = turn.get_loop()
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_resolve, turn)
                    return
            self._free += 1


class CurrentCall:
    """One call, as the worker knows it. What it says about rights informs; the host keeps what counts.

    Attributes:
        id: the call's id.
        capabilities: what the call was granted, as text.
        environment: ``timezone`` and ``locale`` of whoever asked.
        task: the task that runs the function.
        children: the tasks that it started and that still run.
        slots: limits the dispatches in flight.
        started: whether the function's task has taken its first step.
        cancelled: whether the host has cancelled it.
    """

    __slots__ = ("cancelled", "capabilities", "children", "environment", "id", "slots", "started", "task")

    def __init__(self, id: str, capabilities: tuple[str, ...], environment: Mapping[str, Any]) -> None:  # noqa: A002  the wire's word
        self.id = id
        self.capabilities = capabilities
        self.environment = environment
        self.task: asyncio.Task[None] | None = None
        self.children: set[asyncio.Task[Any]] = set()
        self.slots = Slots(MAX_IN_FLIGHT)
        self.started = False
        self.cancelled = False


def _resolve(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


current_call: ContextVar[CurrentCall | None] = ContextVar("sideband_call", default=None)


def inherit_context() -> None:
    """Make threads and executor jobs start in the context of whoever starts them, as tasks do.

    An executor's thread outlives the call that happened to create it, so each job brings a context of its own.
    """
    start = threading.Thread.start
    submit = ThreadPoolExecutor.submit

    def start_in_context(self: threading.Thread) -> None:
        context, run = copy_context(), self.run
        self.run = lambda: context.run(run)  # type: ignore[method-assign]
        start(self)

    def submit_in_context(
        self: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        return submit(self, copy_context().run, function, *args, **kwargs)

    threading.Thread.start = start_in_context  # type: ignore[method-assign]
    ThreadPoolExecutor.submit = submit_in_context  # type: ignore[method-assign, assignment]
