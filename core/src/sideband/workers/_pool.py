"""The worker pool of a host: one worker per trust domain, started on demand, reused, and replaced on failure."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from time import monotonic, perf_counter
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from ..hooks import ObserveEvent, WorkerEnd, WorkerStart
from ..sandboxing import LaunchRequest, Sandbox
from ._calls import CallAnswer, NotBegun, WorkerCall, WorkerReport
from ._errors import CallTimeout, WorkerStartFailed
from ._host_time import HostTime
from ._slots import Permits, Slot, make_way

__all__ = ["WorkerPool"]

_log = logging.getLogger("sideband.workers")
_ENDED = "the host is closed and no longer starts workers"


Observe = Callable[[ObserveEvent], Awaitable[None]]


async def _unobserved(event: ObserveEvent) -> None:
    """Discard an event."""


def _no_report(report: WorkerReport) -> None:
    """Discard a report."""


@define(eq=False, repr=False)
class WorkerPool:
    """A pool that runs calls in workers. Use it with ``async with``: exiting it kills all workers.

    When the maximum number of workers is running, trust domains take turns: an idle worker is replaced first. If none
    is idle, the one in use for longest gets no new calls, and is replaced when its calls have ended.

    Args:
        sandbox: the sandbox that launches the workers.
        idle_seconds: the time in seconds that an idle worker is kept.
        maximum: the maximum number of workers. A domain gets at most half of them, but at least one.
        start_timeout: the maximum time for a new worker to become ready, in seconds.
        cancel_grace: the maximum time for a cancelled call to end before its worker is replaced, in seconds.
        write_timeout: the maximum time for a worker to read one message, in seconds.
        line_timeout: the maximum time between the first and the last byte of a worker's message, in seconds.
        report: called with each event in a worker that is not part of a call's result.
        observe: called with the start and the end of each worker.

    Example:
        >>> async with WorkerPool(PlainSandbox()) as pool:
        ...     answer = await pool.call(call)
        ...     print(answer.value)
    """

    _sandbox: Sandbox
    _idle_seconds: float = field(default=300.0, kw_only=True)
    _maximum: int = field(default=32, kw_only=True)
    _start_timeout: float = field(default=30.0, kw_only=True)
    _cancel_grace: float = field(default=2.0, kw_only=True)
    _write_timeout: float = field(default=10.0, kw_only=True)
    _line_timeout: float = field(default=60.0, kw_only=True)
    _report: Callable[[WorkerReport], None] = field(default=_no_report, kw_only=True)
    _observe: Observe = field(default=_unobserved, kw_only=True)
    _started: int = field(default=0, init=False)
    _time: HostTime = field(factory=HostTime, init=False)
    _permits: Permits = field(init=False)
    _shared: dict[str, Slot] = field(factory=dict, init=False)
    _slots: set[Slot] = field(factory=set, init=False)
    _closed: bool = field(default=False, init=False)
    _tasks: TaskGroup = field(init=False)

    @_permits.default
    def _all_permits(self) -> Permits:
        return Permits(self._maximum)

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._retire_idle)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        self._tasks.cancel_scope.cancel()
        # Do not pass the body's exception: the task group would wrap it in an exception group.
        await self._tasks.__aexit__(None, None, None)

    async def call(self, call: WorkerCall, deadline: float | None = None) -> CallAnswer:
        """Run one call in the worker of its domain.

        Args:
            call: the call.
            deadline: the end of its timeout on the clock of ``anyio.current_time()``, if the timeout has begun before.

        If the caller is cancelled, the call is cancelled in the worker too, with a wait of at most ``cancel_grace``.

        Raises:
            SkillFailed: if the function or the import of its module raised.
            SkillRefused: if the function does not exist or is not ``async def``, or its result cannot be sent.
            ArgumentsInvalid: if the arguments cannot be sent.
            CallTimeout: if the call did not end in time. It was cancelled, or its worker is being replaced.
            WorkerStartFailed: if no worker could be started.
            WorkerExited: if the worker ended during the call.
            WorkerBlocked: if another call blocked the worker until it was replaced, or until this call timed out.
            ProtocolViolation: if the worker sent an invalid message and was killed.
            WorkerOverLimit: if the worker exceeded a resource limit and was killed.
        """
        if deadline is None:
            deadline = anyio.current_time() + call.timeout
        while True:
            slot = self._slot(call)
            slot.enter(call.id, deadline)
            try:
                worker = slot.ready_worker
                if worker is None:
                    await self._wait(slot, call, deadline)
                    worker = slot.ready_worker
                if worker is not None:
                    call.handler.assigned(worker.process.isolation)
                    return await worker.call(call, deadline)
            except NotBegun:
                continue
            finally:
                self._exit(slot, call)
            if slot.error is not None:
                raise slot.error

    async def _wait(self, slot: Slot, call: WorkerCall, deadline: float) -> None:
        with anyio.CancelScope(deadline=deadline):
            await slot.settled.wait()
        if slot.settled.is_set():
            return
        if slot.permit.granted.is_set():
            raise CallTimeout(call.tool, call.timeout, hint="raise the timeout; the worker was not ready in time")
        hint = f"raise `workers` under [policy]; all {self._maximum} workers were in use"
        raise CallTimeout(call.tool, call.timeout, hint=hint)

    def _slot(self, call: WorkerCall) -> Slot:
        """Return the slot for a new call: that of the domain if it accepts calls, else a new one."""
        slot = None if call.alone else self._open_slot(call.domain)
        if slot is not None:
            return slot
        if self._closed:
            raise WorkerStartFailed(_ENDED)
        slot = Slot(self._permits.ask(call.domain), alone=call.alone)
        self._slots.add(slot)
        if not call.alone:
            self._shared[call.domain] = slot
        self._make_way()
        # Run it in the pool's task group: the first caller may be cancelled while others wait for the same worker.
        self._tasks.start_soon(self._run, slot, call.launch)
        return slot

    def _open_slot(self, domain: str) -> Slot | None:
        """Return a slot of the domain that accepts calls. There are several if workers were blocked for some time."""
        slot = self._shared.get(domain)
        if slot is not None and slot.takes_calls:
            return slot
        for other in self._slots:
            if other.permit.domain == domain and other.takes_calls and not other.alone:
                self._shared[domain] = other
                return other
        return None

    def _exit(self, slot: Slot, call: WorkerCall) -> None:
        slot.exit(call.id)
        if slot.leaving and not slot.permit.granted.is_set():
            self._permits.leave(slot.permit)
        self._make_way()

    async def _run(self, slot: Slot, request: LaunchRequest) -> None:
        """Run the worker of a slot, from waiting for the permit until its end."""
        try:
            with slot.scope:
                await slot.permit.granted.wait()
                try:
                    await self._serve(slot, request)
                except WorkerStartFailed:
                    if slot.worker is None or not slot.worker.killed:
                        raise
                    # It was killed before any call, with its parent for example. Start another one.
                    await self._serve(slot, request)
        except Exception as error:  # noqa: BLE001  a failure of one worker must not affect others
            if slot.settled.is_set():
                self._report_defect(slot, error)
            else:
                slot.error = error
        finally:
            self._forget(slot)

    async def _serve(self, slot: Slot, request: LaunchRequest) -> None:
        if not slot.calls or self._closed:
            return
        from ._worker import Worker  # noqa: PLC0415  many programs run no skill

        began = perf_counter()
        process = await self._sandbox.launch(request)
        self._started += 1
        number, domain = self._started, slot.permit.domain
        slot.worker = worker = Worker(
            process=process,
            limits=request.limits,
            share=self._time.share(),
            domain=domain,
            start_timeout=self._start_timeout,
            cancel_grace=self._cancel_grace,
            write_timeout=self._write_timeout,
            line_timeout=self._line_timeout,
            report=self._report,
        )

        async def started() -> None:
            nonlocal began
            now = perf_counter()
            milliseconds, began = (now - began) * 1000, now
            slot.settled.set()
            await self._observe(WorkerStart(number, domain, process.isolation.label, milliseconds))

        try:
            await worker.run(started)
        finally:
            if slot.settled.is_set():
                status = "failed" if worker.failure_code else "retired"
                served = (perf_counter() - began) * 1000
                with anyio.CancelScope(shield=True):
                    await self._observe(
                        WorkerEnd(number, domain, process.isolation.label, status, worker.failure_code, served)
                    )

    def _report_defect(self, slot: Slot, error: Exception) -> None:
        """Log and report an exception in the host's own code for a worker."""
        _log.error("serving a worker failed", exc_info=error)
        message = f"the host failed to serve the worker: {type(error).__name__}"
        pid = slot.worker.process.pid if slot.worker is not None else 0
        self._report(WorkerReport("worker.failed", message, slot.permit.domain, pid))

    def _forget(self, slot: Slot) -> None:
        self._slots.discard(slot)
        if self._shared.get(slot.permit.domain) is slot:
            del self._shared[slot.permit.domain]
        if not slot.settled.is_set() and slot.error is None:
            slot.error = WorkerStartFailed(_ENDED)
        slot.settled.set()
        self._permits.leave(slot.permit)
        self._make_way()

    def _make_way(self) -> None:
        """Ask one worker to leave for each missing permit."""
        if not self._permits.is_waited_for:
            return
        started = [slot for slot in self._slots if slot.permit.granted.is_set()]
        for domain, number in self._permits.lacking():
            make_way([slot for slot in started if domain in (None, slot.permit.domain)], number)

    async def _retire_idle(self) -> None:
        while True:
            now = monotonic()
            ages = {slot: now - slot.since for slot in self._slots if slot.is_idle}
            for slot, age in ages.items():
                if age >= self._idle_seconds:
                    slot.leave()
            young = [age for age in ages.values() if age < self._idle_seconds]
            await anyio.sleep(self._idle_seconds - max(young, default=0.0))
