"""One worker process: send calls to it, serve its dispatches, and fail its calls when it ends."""

from __future__ import annotations

import math
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from time import monotonic

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from ..sandboxing import WorkerLimits, WorkerProcess
from . import _wire
from ._blocking import BEGIN_SECONDS, LoopWatch, Stack
from ._calls import CallAnswer, WorkerCall, WorkerReport
from ._channel import Later, WorkerChannel, WriteTimeout, open_channel
from ._dispatching import Dispatching
from ._errors import (
    ArgumentsInvalid,
    CallTimeout,
    ProtocolViolation,
    WorkerBlocked,
    WorkerError,
    WorkerExited,
    WorkerStartFailed,
)
from ._host_time import TimeShare
from ._intake import Intake
from ._outputs import WorkerOutputs
from ._pending import PendingCall, PendingCalls
from ._watchdog import Watchdog
from .runtime import PROTOCOL, Unsendable

# The maximum time that fire-and-forget dispatches, such as progress, may run after their call has ended.
_SILENT_SECONDS = 2.0
_END_GRACE = 1.0
# Not 0.1 s: `anyio.wait_all_tasks_blocked` polls at that interval, and a task that wakes at that moment looks busy.
_WATCH_SECONDS = 0.125
_MAX_REPORTS = 100

Failure = Callable[[], WorkerError]


@define(eq=False, repr=False, kw_only=True)
class Worker:
    """A worker, from its start to its end. It owns the process, and ``run`` serves it.

    Args:
        process: the launched process.
        limits: the limits of the worker.
        share: the worker's share of the host's time, which is closed with the worker.
        domain: the trust domain, for reports.
        start_timeout: the maximum time until the worker is ready, in seconds.
        cancel_grace: the maximum time for a cancelled call to end, in seconds.
        write_timeout: the maximum time for the worker to read one message, in seconds.
        line_timeout: the maximum time between the first and the last byte of its messages, in seconds.
        report: called with each event that is not part of a call's result.

    Attributes:
        stuck: whether it ignored a cancellation. It gets no new calls then.
        ended: whether it has ended or is about to end, so that it accepts no calls.
        killed: whether another process or the system has killed it before it was ready.
        failure_code: the code of the error with which it has ended; empty if the pool ended it.
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
    killed: bool = field(default=False, init=False)
    failure_code: str = field(default="", init=False)
    _calls: PendingCalls = field(factory=PendingCalls, init=False)
    _reports: Counter[str] = field(factory=Counter, init=False)
    _failure: Failure | None = field(default=None, init=False)
    _ready: bool = field(default=False, init=False)
    _channel: WorkerChannel = field(init=False)
    _outputs: WorkerOutputs = field(init=False)
    _watchdog: Watchdog = field(init=False)
    _stack: Stack = field(factory=Stack, init=False)
    _loop: LoopWatch = field(init=False)
    _tasks: TaskGroup = field(init=False)
    _intake: Intake = field(init=False)

    def __attrs_post_init__(self) -> None:
        process, limits = self.process, self._limits
        self._channel = open_channel(process.channel, write_timeout=self._write_timeout, send_left=self._send_left)
        self._outputs = WorkerOutputs(
            process,
            self._calls,
            limit=limits.output,
            share=self._share,
            stack=self._stack,
            end=self._end_with_report,
        )
        self._watchdog = Watchdog(process, limits)
        self._loop = LoopWatch(process, self._calls, self._stack, self._ping, self._is_drained)

    @property
    def takes_calls(self) -> bool:
        """Whether it accepts new calls."""
        return self._ready and not self.ended and not self.stuck and not self._loop.is_blocked

    def _is_drained(self) -> bool:
        return not self._intake.is_paused and self._channel.is_drained

    def _ping(self, number: int) -> None:
        self._tasks.start_soon(self._send, _wire.ping(number))

    async def run(self, started: Callable[[], Awaitable[None]]) -> None:
        """Perform the handshake, serve the worker until it ends, and release its resources.

        Args:
            started: called when the worker accepts calls, before its first message is read.

        Raises:
            WorkerError: if the worker ended before it was ready.
        """
        try:
            async with anyio.create_task_group() as self._tasks:
                self._intake = Intake(
                    self._calls,
                    Dispatching(self._tasks, self._share, self._send, self._report),
                    self._outputs,
                    share=self._share,
                    answer=self._channel.send,
                    pong=self._loop.pong,
                    line_timeout=self._line_timeout,
                )
                self._tasks.start_soon(self._outputs.read)
                self._tasks.start_soon(self._wait_for_end)
                self._tasks.start_soon(self._guard)
                self.end(await self._converse(started))
        finally:
            self.ended = True
            self.failure_code = "" if self._failure is None else self._failure().code
            self._fail_calls(lambda: WorkerExited("was stopped because the host closed"))
            self._report_surplus()
            self._share.close()
            self._channel.close()
            with anyio.CancelScope(shield=True):
                await self.process.close()
        if not self._ready and self._failure is not None:
            raise _start_failure(self._failure())

    async def _guard(self) -> None:
        """End the worker when it exceeds a limit, or does not finish a line in time."""
        while True:
            await anyio.sleep(_WATCH_SECONDS)
            failure = self._watchdog.check(is_idle=self._ready and not self._calls) or self._intake.overdue()
            if failure is not None:
                self._end_with_report(failure)
            elif not self.ended:
                self._loop.check(self._watchdog.processor)

    def _end_with_report(self, failure: Failure) -> None:
        if self._failure is None:
            error = failure()
            self._report(error.code, error.message)
        self.end(failure)

    async def _wait_for_end(self) -> None:
        """End the worker after its process has exited, even if another process holds its channel open."""
        await self.process.wait()
        self.ended = True
        # Its last messages may not have been read yet.
        await anyio.sleep(_END_GRACE)
        self.end(await self._exit_failure())

    def end(self, failure: Failure) -> None:
        """Kill the worker and fail its calls. Only the first reason counts."""
        self.ended = True
        self._fail_calls(failure)
        self.process.kill()
        self._tasks.cancel_scope.cancel()

    def _fail_calls(self, failure: Failure) -> None:
        if self._failure is None:
            self._failure = failure
        for call in self._calls:
            call.end(error=self._failure)

    async def _converse(self, started: Callable[[], Awaitable[None]]) -> Failure:
        """Exchange messages with the worker until it ends, and return the reason."""
        try:
            with anyio.move_on_after(self._start_timeout) as starting:
                await self._channel.send(_wire.hello())
                await self._channel.pump(self._take_greeting)
            if starting.cancelled_caught:
                return lambda: WorkerExited(f"was killed because it was not ready within {self._start_timeout:g} s")
            if self._ready:
                await started()
                await self._channel.pump(self._intake.take)
        except ProtocolViolation as violation:
            problem = violation.problem
            self._report("worker.protocol", problem)
            return lambda: ProtocolViolation(problem)
        except WriteTimeout:
            return self._write_timed_out
        self.ended = True
        return await self._exit_failure()

    def _take_greeting(self, data: bytes) -> Later | None:
        found = self._intake.cut(data)
        if not found:
            return None
        ready = _wire.parse(found[0])
        if not isinstance(ready, _wire.ReadyMessage) or len(found) > 1:
            raise ProtocolViolation("expected a single `ready` message first")
        if ready.version != PROTOCOL:
            raise ProtocolViolation(f"unsupported protocol version {ready.version}, expected {PROTOCOL}")
        self._ready = True
        return _stop

    async def _exit_failure(self) -> Failure:
        """Return an error with the exit code or signal and the last output, if they are available soon."""
        how = "closed its channel"
        with anyio.move_on_after(_END_GRACE):
            code = await self.process.wait()
            how = f"exited with code {code}" if code >= 0 else f"was killed by {_signal_name(-code)}"
            if (failure := self._watchdog.check_exit()) is not None:
                self._end_with_report(failure)
                return failure
            self.killed = code < 0 and not self._ready
            await self._outputs.done.wait()
        if words := self._outputs.last_words:
            how += f" (last output: {words})"
        if self._ready:
            self._report("worker.exited", f"the worker {how}")
        return lambda: WorkerExited(how)

    def _write_timed_out(self) -> WorkerError:
        if self._loop.is_blocked:
            return WorkerBlocked(self._loop.where)
        return WorkerExited(f"was killed because it read nothing for {self._write_timeout:g} s")

    def _report(self, code: str, message: str, call: str | None = None, op: str | None = None) -> None:
        """Report an event, at most a hundred times per code, so that a worker cannot flood the ledger."""
        self._reports[code] += 1
        if self._reports[code] <= _MAX_REPORTS:
            self._report_to(WorkerReport(code, message, self._domain, self.process.pid, call, op))

    def _report_surplus(self) -> None:
        for code, count in self._reports.items():
            if count > _MAX_REPORTS:
                message = f"{count - _MAX_REPORTS:,} more reports of this kind in this worker"
                self._report_to(WorkerReport(code, message, self._domain, self.process.pid))

    # calls

    async def call(self, spec: WorkerCall, deadline: float) -> CallAnswer:
        """Run one call with a ``deadline`` on the event loop's clock. See ``WorkerPool.call``."""
        # A worker without other calls begins it at once.
        begin_by = monotonic() + BEGIN_SECONDS if self._calls else None
        try:
            line = _wire.call(spec, begin_by)
        except Unsendable as problem:
            raise ArgumentsInvalid(spec.tool, f"cannot send the arguments: {problem}") from None
        if self._failure is not None:
            raise self._failure()
        call = self._calls.add(spec, begin_by)
        self._share.touch()
        try:
            await self._send(line)
            await call.ending.wait(deadline)
            if call.silent and call.ending.has_come:
                await call.wait_for_silent(min(_SILENT_SECONDS, deadline - anyio.current_time()))
            if not call.ending.has_come:
                blocked = self._blocked_by_other(call)
                await self._cancel(call)
                blocked = blocked or self._blocked_by_other(call)
                raise blocked or CallTimeout(spec.tool, spec.timeout, where=self._loop.where, waiting=call.where)
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

    def _blocked_by_other(self, call: PendingCall) -> WorkerBlocked | None:
        return WorkerBlocked(self._loop.where) if self._loop.is_blocked_by_other(call) else None

    async def _cancel(self, call: PendingCall) -> None:
        """Cancel a call in the worker. A worker that ignores the cancellation gets no new calls.

        If another call blocks the worker, it will see the cancellation later. If this call blocks it, it is killed.
        """
        call.cancel_dispatches()
        self._loop.ask()
        with anyio.move_on_after(self._cancel_grace):
            await self._send(_wire.cancel(call.spec.id))
            await call.ending.wait(math.inf)
        if call.ending.has_come:
            return
        await self._loop.find_blocking_call()
        if self._loop.is_blocked_by_other(call):
            return
        self.stuck = True
        self._report("worker.stuck", f"{call.spec.tool} did not end after it was cancelled", call.spec.id)
        if self._loop.is_blocked_by(call):
            self.end(partial(WorkerBlocked, self._loop.where))

    async def _send(self, line: bytes) -> None:
        send = self._channel.send_soon if len(self._calls) > 1 else self._channel.send_now
        if (sent := send(line)) < len(line):
            await self._send_rest(line, sent)

    def _send_left(self) -> None:
        self._tasks.start_soon(self._send_rest, b"", 0)

    async def _send_rest(self, line: bytes, sent: int) -> None:
        try:
            await self._channel.send_rest(line, sent)
        except WriteTimeout:
            self.end(self._write_timed_out)


def _start_failure(failure: WorkerError) -> WorkerError:
    if not isinstance(failure, WorkerExited):
        return failure
    how = failure.message.removesuffix(" during the call")
    return WorkerStartFailed(f"{how} before it was ready", hint="run `sideband doctor` to check the sandbox")


async def _stop() -> bool:
    return False


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
