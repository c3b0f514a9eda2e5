"""One worker process and the conversation with it: calls in, dispatches out, and an end that reaches everybody."""

from __future__ import annotations

import signal
from collections import OrderedDict
from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskGroup

from . import _wire
from ._calls import CallAnswer, WorkerCall, WorkerReport
from ._channel import WriteTimeout, open_channel
from ._dispatching import Dispatching
from ._errors import ArgumentsInvalid, CallTimeout, ProtocolViolation, WorkerError, WorkerExited, WorkerStartFailed
from ._logs import LastWords
from ._outputs import read_outputs
from ._pending import PendingCall
from ._sandbox import WorkerProcess
from .runtime import PROTOCOL, BadFrame, LineBuffer, Unsendable

__all__ = ["Worker"]

# How long what nobody waits for, progress above all, may go on after its call has ended.
_SILENT_SECONDS = 2.0
_MAX_FINISHED = 4_096
_LARGE_LINE = 65_536
_END_GRACE = 1.0

Failure = Callable[[], WorkerError]


class Worker:
    """A worker, from its start to its end. Owns the process; ``run`` is its life.

    Args:
        process: as launched.
        domain: its trust domain, for reports.
        start_timeout: seconds until it must be ready.
        cancel_grace: seconds that a cancelled call may take to end.
        write_timeout: seconds that one message may take to be read by it.
        report: told what nobody waits for.

    Attributes:
        stuck: whether it did not obey a cancel; it gets no new calls then.
        ended: whether it takes no calls any more because it is gone, or about to be.
    """

    def __init__(
        self,
        process: WorkerProcess,
        *,
        domain: str,
        start_timeout: float,
        cancel_grace: float,
        write_timeout: float,
        report: Callable[[WorkerReport], None],
    ) -> None:
        self.process = process
        self.stuck = False
        self.ended = False
        self._domain = domain
        self._start_timeout = start_timeout
        self._cancel_grace = cancel_grace
        self._write_timeout = write_timeout
        self._report_to = report
        self._channel = open_channel(process.channel, write_timeout=write_timeout)
        self._calls: dict[str, PendingCall] = {}
        self._finished: OrderedDict[str, bool] = OrderedDict()
        self._failure: Failure | None = None
        self._ready = False
        self._last_words = LastWords()
        self._outputs_done = anyio.Event()
        self._tasks: TaskGroup
        self._dispatching: Dispatching

    @property
    def busy(self) -> int:
        """How many calls are in it."""
        return len(self._calls)

    async def run(self, started: Callable[[], None]) -> None:
        """Greet it, serve it until it ends, and clean up after it.

        Args:
            started: called when it takes calls.

        Raises:
            WorkerError: it ended before.
        """
        try:
            async with anyio.create_task_group() as self._tasks:
                self._dispatching = Dispatching(self._tasks, self._send, self._report)
                self._tasks.start_soon(read_outputs, self.process, self._take_output, self._outputs_done)
                self._tasks.start_soon(self._watch)
                self.end(await self._converse(started))
        finally:
            self.ended = True
            self._fail_calls(lambda: WorkerExited("with its host"))
            self._channel.close()
            with anyio.CancelScope(shield=True):
                await self.process.close()
        if not self._ready and self._failure is not None:
            raise _start_failure(self._failure())

    async def _watch(self) -> None:
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
        for call in self._calls.values():
            call.end(error=self._failure)

    async def _converse(self, started: Callable[[], None]) -> Failure:
        """Talk to it until it ends. Returns why it did."""
        lines = LineBuffer()
        try:
            with anyio.move_on_after(self._start_timeout) as starting:
                await self._channel.send(_wire.hello())
                await self._channel.pump(lambda data: self._take_greeting(lines, data))
            if starting.cancelled_caught:
                return lambda: WorkerExited(f"because it was not ready within {self._start_timeout:g} s")
            if self._ready:
                started()
                await self._channel.pump(lambda data: self._take_data(lines, data))
        except ProtocolViolation as violation:
            problem = violation.problem
            self._report("worker.protocol", problem)
            return lambda: ProtocolViolation(problem)
        except WriteTimeout:
            return self._reads_nothing
        self.ended = True
        return await self._how_it_ended()

    def _take_greeting(self, lines: LineBuffer, data: bytes) -> Awaitable[bool] | None:
        found = _cut(lines, data)
        if not found:
            return None
        ready = _wire.parse(found[0])
        if not isinstance(ready, _wire.Ready) or len(found) > 1:
            raise ProtocolViolation("its first message is not `ready`, or not alone")
        if ready.version != PROTOCOL:
            raise ProtocolViolation(f"it speaks version {ready.version} of the protocol, not {PROTOCOL}")
        self._ready = True
        return _stop()

    async def _how_it_ended(self) -> Failure:
        """Its exit code or signal and its last words, as far as they can be had soon."""
        how = "by closing its channel"
        with anyio.move_on_after(_END_GRACE):
            code = await self.process.wait()
            how = f"with exit code {code}" if code >= 0 else f"by signal {_signal_name(-code)}"
            await self._outputs_done.wait()
        if words := str(self._last_words):
            how += f" (its last words: {words})"
        if self._ready:
            self._report("worker.exited", f"the worker ended {how}")
        return lambda: WorkerExited(how)

    def _reads_nothing(self) -> WorkerError:
        return WorkerExited(f"by the host, because it read nothing for {self._write_timeout:g} s")

    def _report(self, code: str, message: str, call: str | None = None, op: str | None = None) -> None:
        self._report_to(WorkerReport(code, message, self._domain, self.process.pid, call, op))

    # calls

    async def call(self, spec: WorkerCall, deadline: float) -> CallAnswer:
        """Run one call that has to end by ``deadline``, on the event loop's clock. See ``WorkerPool.call``."""
        line = _call_line(spec)
        if self._failure is not None:
            raise self._failure()
        call = self._calls[spec.id] = PendingCall(spec)
        try:
            with anyio.CancelScope(deadline=deadline):
                await self._send(line)
                await call.ended.wait()
                await call.let_silent_end(_SILENT_SECONDS)
            if not call.ended.is_set():
                await self._cancel(call)
                raise CallTimeout(spec.tool, spec.timeout)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._cancel(call)
            raise
        finally:
            await call.end_dispatches()
            call.log.close()
            self._forget(call)
        if call.error is not None:
            raise call.error()
        return CallAnswer(call.value, self.process.isolation)

    async def _cancel(self, call: PendingCall) -> None:
        """Cancel it in the worker. A worker that doesn't obey takes no new calls."""
        call.cancel_dispatches()
        with anyio.move_on_after(self._cancel_grace):
            await self._send(_wire.cancel(call.spec.id))
            await call.ended.wait()
        if not call.ended.is_set():
            self.stuck = True
            self._report("worker.stuck", f"{call.spec.tool} did not end when it was cancelled", call.spec.id)

    def _forget(self, call: PendingCall) -> None:
        del self._calls[call.spec.id]
        self._finished[call.spec.id] = call.ended.is_set()
        if len(self._finished) > _MAX_FINISHED:
            self._finished.popitem(last=False)

    async def _send(self, line: bytes) -> None:
        try:
            await self._channel.send(line)
        except WriteTimeout:
            self.end(self._reads_nothing)

    # what the worker says

    def _take_data(self, lines: LineBuffer, data: bytes) -> Awaitable[bool] | None:
        found = _cut(lines, data)
        for index, line in enumerate(found):
            if len(line) > _LARGE_LINE:
                return self._take_slowly(found[index:])
            refusal = self._take(_wire.parse(line))
            if refusal is not None or self._dispatching.is_full:
                return self._take_slowly(found[index + 1 :], refusal)
        return None

    async def _take_slowly(self, lines: list[bytes], refusal: bytes | None = None) -> bool:
        """Take lines when something has to be waited for: room, a thread, or that the worker reads."""
        await self._settle(refusal)
        for line in lines:
            message = (
                await anyio.to_thread.run_sync(_wire.parse, line) if len(line) > _LARGE_LINE else _wire.parse(line)
            )
            await self._settle(self._take(message))
        return True

    async def _settle(self, refusal: bytes | None) -> None:
        if refusal is not None:
            # Waited for, so that a worker that asks in vain without reading is not read any more.
            await self._channel.send(refusal)
        if self._dispatching.is_full:
            await self._dispatching.wait_for_room()

    def _take(self, message: _wire.Message) -> bytes | None:
        """Act on a message. Returns the answer to a dispatch that is refused."""
        match message:
            case _wire.Dispatch():
                return self._dispatching.take(self._known(message.call), message)
            case _wire.Result():
                self._take_result(message)
            case _wire.Cancel():
                self._dispatching.cancel(message)
            case _wire.Log():
                self._take_log(message)
            case _wire.Progress():
                call = self._known(message.call)
                if call is not None:
                    self._dispatching.take_progress(call, message)
            case _wire.Ready():
                raise ProtocolViolation("it says `ready` a second time")
        return None

    def _known(self, identifier: str) -> PendingCall | None:
        """The call of that id, ``None`` if it has ended; a made-up id is a violation."""
        call = self._calls.get(identifier)
        if call is None and identifier not in self._finished:
            raise ProtocolViolation("it names a call that it was never given")
        return call

    def _take_result(self, message: _wire.Result) -> None:
        call = self._known(message.call)
        if call is None:
            # The host may have given the call up; it answers once all the same.
            if self._finished[message.call]:
                raise ProtocolViolation("a call has two results")
            self._finished[message.call] = True
        elif call.ended.is_set():
            raise ProtocolViolation("a call has two results")
        else:
            call.take(message)

    def _take_log(self, message: _wire.Log) -> None:
        call = None if message.call is None else self._known(message.call)
        if call is None:
            self._take_output(message.stream, message.text)
            return
        call.log.add(message.stream, message.text)
        if message.stream == "stderr":
            self._last_words.add(message.text)

    def _take_output(self, stream: str, text: str) -> None:
        """What belongs to no call goes to each that runs: they have equal rights."""
        for call in self._calls.values():
            call.log.add(f"worker.{stream}", text)
        if stream == "stderr":
            self._last_words.add(text)


def _call_line(spec: WorkerCall) -> bytes:
    folder = str(spec.launch.snapshot)
    try:
        return _wire.call(
            spec.id, spec.module, spec.function, spec.arguments, folder, spec.capabilities, spec.environment
        )
    except Unsendable as problem:
        raise ArgumentsInvalid(spec.tool, f"the arguments can't be sent: {problem}") from None


def _cut(lines: LineBuffer, data: bytes) -> list[bytes]:
    try:
        return lines.feed(data)
    except BadFrame as problem:
        raise ProtocolViolation(str(problem)) from None


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
