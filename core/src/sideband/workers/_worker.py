"""One worker process and the conversation with it: calls in, dispatches out, and an end that reaches everybody."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from ..sandboxing import WorkerLimits, WorkerProcess
from . import _wire
from ._calls import CallAnswer, WorkerCall, WorkerReport
from ._channel import Later, WorkerChannel, WriteTimeout, open_channel
from ._dispatching import Dispatching
from ._errors import ArgumentsInvalid, CallTimeout, ProtocolViolation, WorkerError, WorkerExited, WorkerStartFailed
from ._host_time import TimeShare
from ._intake import Intake
from ._outputs import WorkerOutputs
from ._pending import PendingCall, PendingCalls
from ._watchdog import Watchdog
from .runtime import PROTOCOL, Unsendable

# How long what nobody waits for, progress above all, may go on after its call has ended.
_SILENT_SECONDS = 2.0
_END_GRACE = 1.0
# Out of step with `anyio.wait_all_tasks_blocked`, which looks every 0.1 s: a task that wakes just then seems busy.
_WATCH_SECONDS = 0.125
_MAX_REPORTS = 100

Failure = Callable[[], WorkerError]


@define(eq=False, repr=False, kw_only=True)
class Worker:
    """A worker, from its start to its end. Owns the process; ``run`` is its life.

    Args:
        process: as launched.
        limits: what it may use.
        share: of the host's time; closed with the worker.
        domain: its trust domain, for reports.
        start_timeout: seconds until it must be ready.
        cancel_grace: seconds that a cancelled call may take to end.
        write_timeout: seconds that one message may take to be read by it.
        line_timeout: seconds that one of its messages may take from the first byte to the last.
        report: told what nobody waits for.

    Attributes:
        stuck: whether it did not obey a cancel; it gets no new calls then.
        ended: whether it takes no calls any more because it is gone, or about to be.
    """

    process: WorkerProcess
    _limits: WorkerLimits
    _share: TimeShare
    _domain: str
    _start_timeout: float
    _cancel_grace: float
    _write_timeout: float
    _line_timeout: float
    _report_to: Callable[[WorkerReport], None] = field(alias="report")
    stuck: bool = field(default=False, init=False)
    ended: bool = field(default=False, init=False)
    _calls: PendingCalls = field(factory=PendingCalls, init=False)
    _reports: Counter[str] = field(factory=Counter, init=False)
    _failure: Failure | None = field(default=None, init=False)
    _ready: bool = field(default=False, init=False)
    _channel: WorkerChannel = field(init=False)
    _outputs: WorkerOutputs = field(init=False)
    _watchdog: Watchdog = field(init=False)
    _tasks: TaskGroup = field(init=False)
    _intake: Intake = field(init=False)

    def __attrs_post_init__(self) -> None:
        process, limits = self.process, self._limits
        self._channel = open_channel(process.channel, write_timeout=self._write_timeout)
        self._outputs = WorkerOutputs(
            process, self._calls, limit=limits.output, share=self._share, end=self._end_with_report
        )
        self._watchdog = Watchdog(process, limits)

    async def run(self, started: Callable[[], None]) -> None:
        """Greet it, serve it until it ends, and clean up after it.

        Args:
            started: called when it takes calls.

        Raises:
            WorkerError: it ended before.
        """
        try:
            async with anyio.create_task_group() as self._tasks:
                self._intake = Intake(
                    self._calls,
                    Dispatching(self._tasks, self._share, self._send, self._report),
                    self._outputs,
                    share=self._share,
                    answer=self._channel.send,
                    line_timeout=self._line_timeout,
                )
                self._tasks.start_soon(self._outputs.read)
                self._tasks.start_soon(self._wait_for_end)
                self._tasks.start_soon(self._guard)
                self.end(await self._converse(started))
        finally:
            self.ended = True
            self._fail_calls(lambda: WorkerExited("with its host"))
            self._report_surplus()
            self._share.close()
            self._channel.close()
            with anyio.CancelScope(shield=True):
                await self.process.close()
        if not self._ready and self._failure is not None:
            raise _start_failure(self._failure())

    async def _guard(self) -> None:
        """End it when it uses more than it may, or keeps the host waiting for the rest of a line."""
        while True:
            await anyio.sleep(_WATCH_SECONDS)
            failure = self._watchdog.look(is_idle=self._ready and not self._calls) or self._intake.overdue()
            if failure is not None:
                self._end_with_report(failure)

    def _end_with_report(self, failure: Failure) -> None:
        if self._failure is None:
            error = failure()
            self._report(error.code, error.message)
        self.end(failure)

    async def _wait_for_end(self) -> None:
        """End it when its process has ended but nothing says so: the channel is held open, or is not read just now."""
        await self.process.wait()
        self.ended = True
        # What it said last may still be on its way.
        await anyio.sleep(_END_GRACE)
        self.end(await self._how_it_ended())

    def end(self, failure: Failure) -> None:
        """End it now, and fail the calls that are in it. What counts is the first reason."""
        self.ended = True
        self._fail_calls(failure)
        self.process.kill()
        self._tasks.cancel_scope.cancel()

    def _fail_calls(self, failure: Failure) -> None:
        if self._failure is None:
            self._failure = failure
        for call in self._calls:
            call.end(error=self._failure)

    async def _converse(self, started: Callable[[], None]) -> Failure:
        """Talk to it until it ends. Returns why it did."""
        try:
            with anyio.move_on_after(self._start_timeout) as starting:
                await self._channel.send(_wire.hello())
                await self._channel.pump(self._take_greeting)
            if starting.cancelled_caught:
                return lambda: WorkerExited(f"because it was not ready within {self._start_timeout:g} s")
            if self._ready:
                started()
                await self._channel.pump(self._intake.take)
        except ProtocolViolation as violation:
            problem = violation.problem
            self._report("worker.protocol", problem)
            return lambda: ProtocolViolation(problem)
        except WriteTimeout:
            return self._reads_nothing
        self.ended = True
        return await self._how_it_ended()

    def _take_greeting(self, data: bytes) -> Later | None:
        found = self._intake.cut(data)
        if not found:
            return None
        ready = _wire.parse(found[0])
        if not isinstance(ready, _wire.ReadyMessage) or len(found) > 1:
            raise ProtocolViolation("its first message is not `ready`, or not alone")
        if ready.version != PROTOCOL:
            raise ProtocolViolation(f"it speaks version {ready.version} of the protocol, not {PROTOCOL}")
        self._ready = True
        return _stop

    async def _how_it_ended(self) -> Failure:
        """Its exit code or signal and its last words, as far as they can be had soon."""
        how = "by closing its channel"
        with anyio.move_on_after(_END_GRACE):
            code = await self.process.wait()
            how = f"with exit code {code}" if code >= 0 else f"by signal {_signal_name(-code)}"
            if (failure := self._watchdog.look_back()) is not None:
                self._end_with_report(failure)
                return failure
            await self._outputs.done.wait()
        if words := self._outputs.last_words:
            how += f" (its last words: {words})"
        if self._ready:
            self._report("worker.exited", f"the worker ended {how}")
        return lambda: WorkerExited(how)

    def _reads_nothing(self) -> WorkerError:
        return WorkerExited(f"by the host, because it read nothing for {self._write_timeout:g} s")

    def _report(self, code: str, message: str, call: str | None = None, op: str | None = None) -> None:
        """Report it, unless there are so many reports that they would flood whoever records them."""
        self._reports[code] += 1
        if self._reports[code] <= _MAX_REPORTS:
            self._report_to(WorkerReport(code, message, self._domain, self.process.pid, call, op))

    def _report_surplus(self) -> None:
        for code, count in self._reports.items():
            if count > _MAX_REPORTS:
                message = f"the same happened {count - _MAX_REPORTS:,} more times in this worker"
                self._report_to(WorkerReport(code, message, self._domain, self.process.pid))

    # calls

    async def call(self, spec: WorkerCall, deadline: float) -> CallAnswer:
        """Run one call that has to end by ``deadline``, on the event loop's clock. See ``WorkerPool.call``."""
        try:
            line = _wire.call(spec)
        except Unsendable as problem:
            raise ArgumentsInvalid(spec.tool, f"the arguments can't be sent: {problem}") from None
        if self._failure is not None:
            raise self._failure()
        call = self._calls.add(spec)
        self._share.touch()
        try:
            with anyio.CancelScope(deadline=deadline):
                await self._send(line)
                await call.ended.wait()
                if call.silent:
                    await call.let_silent_end(_SILENT_SECONDS)
            if not call.ended.is_set():
                await self._cancel(call)
                raise CallTimeout(spec.tool, spec.timeout)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._cancel(call)
            raise
        finally:
            if call.dispatches:
                await call.end_dispatches()
            call.log.close()
            self._calls.forget(call)
        if call.error is not None:
            raise call.error()
        return CallAnswer(call.value, self.process.isolation, call.size)

    async def _cancel(self, call: PendingCall) -> None:
        """Cancel it in the worker. A worker that doesn't obey takes no new calls."""
        call.cancel_dispatches()
        with anyio.move_on_after(self._cancel_grace):
            await self._send(_wire.cancel(call.spec.id))
            await call.ended.wait()
        if not call.ended.is_set():
            self.stuck = True
            self._report("worker.stuck", f"{call.spec.tool} did not end when it was cancelled", call.spec.id)

    async def _send(self, line: bytes) -> None:
        try:
            await self._channel.send(line)
        except WriteTimeout:
            self.end(self._reads_nothing)


def _start_failure(failure: WorkerError) -> WorkerError:
    if not isinstance(failure, WorkerExited):
        return failure
    how = failure.message.removesuffix(" while the call was running")
    return WorkerStartFailed(f"{how} before it was ready", hint="`sideband doctor` shows what isolates workers here")


async def _stop() -> bool:
    return False


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
