"""The current call. Tasks, callbacks, threads and executor jobs belong to the call that started them."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from concurrent.futures.thread import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import datetime as dt
    import random

CALL_FILE = "<call>"
"""The file name of the stack frame whose function name is the id of the running call."""

MAX_IN_FLIGHT = 32
"""The maximum number of unanswered dispatches of one call. The host refuses more, so further ones wait here."""


class Slots:
    """A FIFO semaphore for tasks on event loops in different threads."""

    __slots__ = ("_free", "_lock", "_waiting")

    def __init__(self, free: int) -> None:
        self._free = free
        self._lock = threading.Lock()
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take(self) -> bool:
        """Acquire a slot if one is free, and return whether it was acquired."""
        with self._lock:
            is_free = self._free > 0
            self._free -= is_free
        return is_free

    async def wait(self) -> None:
        """Wait for a slot, after ``take`` found none, and acquire it."""
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
        """Release a slot, and pass it to the task that has waited longest."""
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                loop = turn.get_loop()
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_resolve, turn)
                    return
            self._free += 1


class CurrentCall:
    """The worker's state of a call. Its capabilities are informational: the host enforces its own copy.

    Attributes:
        id: the call's id.
        capabilities: the granted capabilities as strings.
        environment: ``timezone`` and ``locale`` of the caller; of a call with a key also ``started`` and ``seed``.
        started_at: the start time of the call, if the skill has asked for it.
        random: the generator of the call's random numbers, if the skill has asked for it.
        task: the task that runs the function.
        children: the running tasks that it has started.
        slots: the semaphore that limits the dispatches in flight.
        started: whether the function's task has taken its first step.
        cancelled: whether the host has cancelled it.
        step: an async function that runs another one in a stack frame whose function name is the call's id, so that a
            printed stack shows which call is running.
    """

    __slots__ = (
        *("cancelled", "capabilities", "children", "environment", "id"),
        *("random", "slots", "started", "started_at", "step", "task"),
    )

    def __init__(self, id: str, capabilities: tuple[str, ...], environment: Mapping[str, Any]) -> None:  # noqa: A002  the name on the wire
        self.id = id
        self.capabilities = capabilities
        self.environment = environment
        self.started_at: dt.datetime | None = None
        self.random: random.Random | None = None
        self.task: asyncio.Task[None] | None = None
        self.children: set[asyncio.Task[Any]] = set()
        self.slots = Slots(MAX_IN_FLIGHT)
        self.started = False
        self.cancelled = False
        code = _step.__code__.replace(co_filename=CALL_FILE, co_name=id)
        self.step: Callable[..., Coroutine[Any, Any, Any]] = FunctionType(code, {})


async def _step(run: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> Any:
    return await run(*arguments)


def _resolve(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


current_call: ContextVar[CurrentCall | None] = ContextVar("sideband_call", default=None)
"""The call of the current task, or ``None``."""


def inherit_context() -> None:
    """Make threads and executor jobs run in a copy of their creator's context, as tasks do.

    An executor's thread outlives the call that created it, so each job gets its own context.
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
