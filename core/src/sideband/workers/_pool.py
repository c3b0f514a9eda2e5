"""The workers of a host: one a trust domain, started when needed, kept warm, replaced when they fail."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup

from ._calls import CallAnswer, WorkerCall, WorkerReport
from ._errors import WorkerExited, WorkerStartFailed
from ._sandbox import LaunchRequest, Sandbox
from ._worker import Worker

__all__ = ["WorkerPool"]


def _no_report(report: WorkerReport) -> None:
    """Drop a report."""


class _Slot:
    """One trust domain: its worker, or the start of it that is under way."""

    __slots__ = ("calls", "error", "last_used", "settled", "worker")

    def __init__(self) -> None:
        self.worker: Worker | None = None
        self.error: Exception | None = None
        self.settled = anyio.Event()
        self.last_used = anyio.current_time()
        self.calls = 0

    @property
    def usable(self) -> bool:
        """Whether it has a worker that takes calls, or will have."""
        if not self.settled.is_set():
            return True
        return self.worker is not None and not self.worker.ended and not self.worker.stuck

    @property
    def idle(self) -> bool:
        """Whether its worker is ready, and nobody uses it."""
        return self.settled.is_set() and self.worker is not None and not self.calls


class WorkerPool:
    """Runs calls in workers. Use it as ``async with``; leaving it ends all of them.

    Args:
        sandbox: starts the workers.
        idle_seconds: how long an idle worker is kept.
        maximum: workers at once; further domains wait until one is idle, which then gives way.
        start_timeout: seconds until a new worker must be ready.
        cancel_grace: seconds that a cancelled call may take to end before its worker is replaced.
        write_timeout: seconds that one message may take to be read by a worker.
        report: told what happens in workers while nobody waits for it.

    Example:
        >>> async with WorkerPool(PlainSandbox()) as pool:
        ...     answer = await pool.call(call)
        ...     print(answer.value)
    """

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        idle_seconds: float = 300.0,
        maximum: int = 32,
        start_timeout: float = 30.0,
        cancel_grace: float = 2.0,
        write_timeout: float = 10.0,
        report: Callable[[WorkerReport], None] = _no_report,
    ) -> None:
        self._sandbox = sandbox
        self._idle_seconds = idle_seconds
        self._maximum = maximum
        self._start_timeout = start_timeout
        self._cancel_grace = cancel_grace
        self._write_timeout = write_timeout
        self._report = report
        self._slots: dict[str, _Slot] = {}
        self._alive: set[_Slot] = set()
        self._queue: deque[anyio.Event] = deque()
        self._tasks: TaskGroup

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._retire_idle)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tasks.cancel_scope.cancel()
        # Without the error of the body, which would come out wrapped in a group.
        await self._tasks.__aexit__(None, None, None)

    async def call(self, call: WorkerCall) -> CallAnswer:
        """Run one call in the worker of its domain.

        Cancelling the caller's scope cancels the call in the worker, and waits for that as long as the grace allows.

        Returns:
            What the function returned, and what isolated it.

        Raises:
            SkillFailed: the function, or the import of its module, raised.
            SkillRefused: there is no such function, it is not ``async def``, or its result can't be sent.
            ArgumentsInvalid: the arguments can't be sent.
            CallTimeout: it did not end in time. It has been cancelled, or its worker is being replaced.
            WorkerStartFailed: there is no worker to run it.
            WorkerExited: its worker ended.
            ProtocolViolation: its worker said what it may not say, and was ended.
        """
        deadline = anyio.current_time() + call.timeout
        slot = await self._ready_slot(call)
        worker = slot.worker
        assert worker is not None  # noqa: S101  what is ready has one
        try:
            call.assigned(worker.process.isolation)
            return await worker.call(call, deadline)
        finally:
            slot.last_used = anyio.current_time()
            self._release(slot)

    async def _ready_slot(self, call: WorkerCall) -> _Slot:
        """The domain's slot with a worker that takes calls, counted as used."""
        while True:
            slot = self._slots.get(call.domain)
            if slot is None or not slot.usable:
                slot = self._slots[call.domain] = _Slot()
                # In the pool's own tasks: whoever asked first may be cancelled while others wait for the same worker.
                self._tasks.start_soon(self._run, slot, call.domain, call.launch)
            slot.calls += 1
            if slot.settled.is_set():
                return slot
            try:
                await slot.settled.wait()
            except BaseException:
                self._release(slot)
                raise
            if slot.usable:
                return slot
            self._release(slot)
            if slot.error is not None:
                raise slot.error

    def _release(self, slot: _Slot) -> None:
        slot.calls -= 1
        if slot.idle:
            if slot.worker is not None and slot.worker.stuck:
                _retire(slot)
            elif self._queue:
                self._make_way()

    async def _run(self, slot: _Slot, domain: str, request: LaunchRequest) -> None:
        """The life of a slot's worker."""
        try:
            await self._wait_for_room()
            self._alive.add(slot)
            slot.worker = Worker(
                await self._sandbox.launch(request),
                domain=domain,
                start_timeout=self._start_timeout,
                cancel_grace=self._cancel_grace,
                write_timeout=self._write_timeout,
                report=self._report,
            )
            await slot.worker.run(slot.settled.set)
        except Exception as error:
            if slot.settled.is_set():
                raise
            slot.error = error
        finally:
            self._alive.discard(slot)
            if self._slots.get(domain) is slot:
                del self._slots[domain]
            if not slot.settled.is_set() and slot.error is None:
                slot.error = WorkerStartFailed("the host ended while the worker was starting")
            slot.settled.set()
            if self._queue:
                self._queue.popleft().set()

    async def _wait_for_room(self) -> None:
        """Wait for one of the ``maximum`` places, first come first served; idle workers give way."""
        while len(self._alive) >= self._maximum:
            turn = anyio.Event()
            self._queue.append(turn)
            self._make_way()
            try:
                await turn.wait()
            finally:
                if turn in self._queue:
                    self._queue.remove(turn)

    def _make_way(self) -> None:
        """End the worker that has been idle for longest, unless one is on its way out already."""
        if any(slot.worker is not None and slot.worker.ended for slot in self._alive):
            return
        idle = [slot for slot in self._alive if slot.idle]
        if idle:
            _retire(min(idle, key=lambda slot: slot.last_used))

    async def _retire_idle(self) -> None:
        while True:
            now = anyio.current_time()
            ages = {slot: now - slot.last_used for slot in self._alive if slot.idle}
            for slot, age in ages.items():
                if age >= self._idle_seconds:
                    _retire(slot)
            young = [age for age in ages.values() if age < self._idle_seconds]
            await anyio.sleep(self._idle_seconds - max(young, default=0.0))


def _retire(slot: _Slot) -> None:
    if slot.worker is not None and not slot.worker.ended:
        slot.worker.end(lambda: WorkerExited("because the host retired it"))
