"""The workers of a host: one a trust domain, started when needed, kept warm, replaced when they fail."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from ..sandboxing import LaunchRequest, Sandbox
from ._calls import CallAnswer, WorkerCall, WorkerReport
from ._errors import CallTimeout, WorkerStartFailed
from ._host_time import HostTime
from ._slots import Permits, Slot, make_way
from ._worker import Worker

__all__ = ["WorkerPool"]

_log = logging.getLogger("sideband.workers")
_ENDED = "the host has ended, and starts no workers any more"


def _no_report(report: WorkerReport) -> None:
    """Drop a report."""


@define(eq=False, repr=False)
class WorkerPool:
    """Runs calls in workers. Use it as ``async with``; leaving it ends all of them.

    Where there are as many workers as there may be, trust domains take turns: an idle worker gives way to who waits,
    and if there is none, the one in use for longest takes no new calls, and gives way when those in it have ended.

    Args:
        sandbox: starts the workers.
        idle_seconds: how long an idle worker is kept.
        maximum: workers at once. No domain has more than half of them, but each may have one.
        start_timeout: seconds until a new worker must be ready.
        cancel_grace: seconds that a cancelled call may take to end before its worker is replaced.
        write_timeout: seconds that one message may take to be read by a worker.
        line_timeout: seconds that one message of a worker may take from its first byte to its last.
        report: told what happens in workers while nobody waits for it.

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
            WorkerOverLimit: its worker used more than it may, and was ended.
        """
        deadline = anyio.current_time() + call.timeout
        while True:
            slot = self._slot(call)
            slot.enter(call.id, deadline)
            try:
                if not slot.settled.is_set():
                    await self._wait(slot, call, deadline)
                if slot.worker is not None and slot.is_ready:
                    call.handler.assigned(slot.worker.process.isolation)
                    return await slot.worker.call(call, deadline)
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
            raise CallTimeout(call.tool, call.timeout, hint="its worker was not ready by then; give it more time")
        hint = f"all {self._maximum} workers were in use; `workers` under [policy] says how many there may be"
        raise CallTimeout(call.tool, call.timeout, hint=hint)

    def _slot(self, call: WorkerCall) -> Slot:
        """The slot for a new call: the domain's if that takes calls, else a new one."""
        slot = None if call.alone else self._shared.get(call.domain)
        if slot is not None and slot.takes_calls:
            return slot
        if self._closed:
            raise WorkerStartFailed(_ENDED)
        slot = Slot(self._permits.ask(call.domain), alone=call.alone)
        self._slots.add(slot)
        if not call.alone:
            self._shared[call.domain] = slot
        self._make_way()
        # In the pool's own tasks: whoever asked first may be cancelled while others wait for the same worker.
        self._tasks.start_soon(self._run, slot, call.launch)
        return slot

    def _exit(self, slot: Slot, call: WorkerCall) -> None:
        slot.exit(call.id)
        if slot.leaving and not slot.permit.granted.is_set():
            self._permits.leave(slot.permit)
        self._make_way()

    async def _run(self, slot: Slot, request: LaunchRequest) -> None:
        """The life of a slot's worker."""
        try:
            with slot.scope:
                await slot.permit.granted.wait()
                await self._serve(slot, request)
        except Exception as error:  # noqa: BLE001  one worker's, whatever it was
            if slot.settled.is_set():
                self._report_defect(slot, error)
            else:
                slot.error = error
        finally:
            self._forget(slot)

    async def _serve(self, slot: Slot, request: LaunchRequest) -> None:
        if not slot.calls or self._closed:
            return
        slot.worker = Worker(
            process=await self._sandbox.launch(request),
            limits=request.limits,
            share=self._time.share(),
            domain=slot.permit.domain,
            start_timeout=self._start_timeout,
            cancel_grace=self._cancel_grace,
            write_timeout=self._write_timeout,
            line_timeout=self._line_timeout,
            report=self._report,
        )
        await slot.worker.run(slot.settled.set)

    def _report_defect(self, slot: Slot, error: Exception) -> None:
        """What went wrong with one worker must not end those of others."""
        _log.error("looking after a worker failed", exc_info=error)
        message = f"looking after the worker failed: {type(error).__name__}"
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
        """Let as many workers leave as are waited for."""
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
