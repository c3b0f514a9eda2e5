"""The dispatches of one worker. Each is admitted or refused, run in its own task, and answered exactly once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskGroup

from ..errors import SidebandError
from ..ops import LimitExceeded, OpCancelled, OpError, OpResultInvalid
from . import _wire
from ._errors import ProtocolViolation
from ._host_time import TimeShare
from ._light_tasks import LightTasks
from ._pending import REPORT, PendingCall, PendingDispatch
from ._turns import Turns
from .runtime import Unsendable

_MAX_IN_FLIGHT = 256
_MAX_HELD = 32 << 20
_MAX_UNREAD = 128 << 20


class Dispatching:
    """The running dispatches of a worker.

    Args:
        tasks: the task group that runs the dispatches.
        share: the worker's share of the host's time.
        send: a function that sends an answer to the worker.
        report: called for each refusal and failure, with code, message, call and op.
    """

    def __init__(
        self,
        tasks: TaskGroup,
        share: TimeShare,
        send: Callable[[bytes], Awaitable[None]],
        report: Callable[[str, str, str, str], None],
    ) -> None:
        self._tasks = LightTasks(tasks, self._cancel_all)
        self._share = share
        self._turns = Turns(share)
        self._send = send
        self._report = report
        self._running: dict[str, PendingDispatch] = {}
        self._held = 0
        self._last = 0
        self._room: anyio.Event | None = None
        # `CancelScope` looks up the class of the running event loop each time.
        self._new_scope = type(anyio.CancelScope())

    def take(self, call: PendingCall | None, message: _wire.DispatchMessage, size: int) -> bytes | None:
        """Start a dispatch, or refuse it and return the answer.

        Args:
            call: the call that requests it, or ``None`` if the call has ended.
            message: the message of the worker.
            size: the size of the message in bytes.

        Raises:
            ProtocolViolation: if the dispatch id does not increase.
        """
        if message.number <= self._last:
            raise ProtocolViolation(f"dispatch id {message.id} does not increase")
        self._last = message.number
        if call is None:
            problem = f"{message.op} was requested by a call that has ended"
            return self._refuse(message, OpError(problem, code="call.finished", op=message.op))
        silent = call.spec.handler.is_fire_and_forget(message.op)
        refusal = call.admit(message.op, silent=silent)
        if refusal is None:
            self._start(PendingDispatch(call, message, size, self._new_scope()), silent=silent)
            return None
        line = self._refuse(message, refusal)
        if not silent:
            return line
        call.miss(message.op)
        return None

    def take_progress(self, call: PendingCall, message: _wire.ProgressMessage, size: int) -> None:
        """Start a dispatch of ``progress.report`` for a progress message. It has no answer."""
        if call.admit(REPORT, silent=True) is None:
            # Progress messages have no dispatch id. `total` is unique only within the call, so include the call.
            identifier = f"p-{call.total}-{message.call}"
            request = _wire.DispatchMessage(message.call, identifier, 0, REPORT, message.params)
            self._start(PendingDispatch(call, request, size, self._new_scope()), silent=True)
        else:
            call.miss(REPORT)

    def cancel(self, message: _wire.CancelMessage) -> None:
        """Cancel a dispatch on request of the skill. Ignore one that has just been answered.

        Raises:
            ProtocolViolation: if the dispatch never existed.
        """
        dispatch = self._running.get(message.dispatch)
        if dispatch is not None:
            dispatch.scope.cancel()
        elif not 0 < message.number <= self._last:
            raise ProtocolViolation("it cancels an unknown dispatch")

    @property
    def is_full(self) -> bool:
        """Whether reading from the worker must pause: too many dispatches are running, or they hold too many bytes."""
        return len(self._running) >= _MAX_IN_FLIGHT or self._held >= _MAX_HELD

    async def wait_for_room(self) -> None:
        """Wait until enough dispatches have ended."""
        while self.is_full:
            self._room = anyio.Event()
            await self._room.wait()
        self._room = None

    def _refuse(self, message: _wire.DispatchMessage, error: OpError) -> bytes:
        self._report(error.code, error.message, message.call, message.op)
        return _error(message, error)

    def _start(self, dispatch: PendingDispatch, *, silent: bool) -> None:
        call = dispatch.call
        self._running[dispatch.message.id] = call.dispatches[dispatch.message.id] = dispatch
        self._held += dispatch.size
        if not silent:
            self._tasks.start(self._run, dispatch)
        else:
            dispatch.missed = call.take_missed()
            call.silent.append(dispatch)
            if len(call.silent) == 1:
                self._tasks.start(self._run_silent, call)

    def _cancel_all(self) -> None:
        for dispatch in self._running.values():
            dispatch.scope.cancel()

    async def _run(self, dispatch: PendingDispatch) -> None:
        try:
            await self._send_answer(dispatch, await self._turns.run(self._outcome(dispatch)))
        finally:
            self._discard(dispatch)

    async def _send_answer(self, dispatch: PendingDispatch, line: bytes) -> None:
        message = dispatch.message
        if self._held + len(line) > _MAX_UNREAD:
            line = _error(message, LimitExceeded("unread_bytes", _MAX_UNREAD, op=message.op, retryable=True))
        self._held += len(line)
        dispatch.size += len(line)
        await self._send(line)

    async def _run_silent(self, call: PendingCall) -> None:
        """Run fire-and-forget dispatches sequentially, so that progress arrives in order."""
        handler = call.spec.handler
        try:
            while call.silent:
                first, taken = call.silent[0], handler.reported
                if first.missed:
                    handler.missed(first.missed)
                await self._turns.run(self._outcome(first))
                if first.message.op == REPORT and first.scope.cancel_called and handler.reported == taken:
                    handler.missed(1)
                if len(call.silent) == 1 and call.missed:
                    handler.missed(call.take_missed())
                self._discard(call.silent.popleft())
        finally:
            while call.silent:
                self._discard(call.silent.popleft())

    async def _outcome(self, dispatch: PendingDispatch) -> bytes:
        with dispatch.scope:
            return await self._answer(dispatch.call, dispatch.message)
        return _error(dispatch.message, OpCancelled(dispatch.message.op))

    def _discard(self, dispatch: PendingDispatch) -> None:
        dispatch.call.discard(dispatch)
        del self._running[dispatch.message.id]
        self._held -= dispatch.size
        if self._room is not None:
            self._room.set()

    async def _answer(self, call: PendingCall, message: _wire.DispatchMessage) -> bytes:
        try:
            payload = await call.spec.handler.dispatch(message.op, message.params)
            if _wire.is_large(payload):
                return await self._share.run_in_thread(_wire.dispatch_result, message.id, payload)
            return _wire.dispatch_result(message.id, payload)
        except OpError as error:
            return _error(message, error)
        except Unsendable as problem:
            return _error(message, OpResultInvalid(message.op, str(problem)))
        except SidebandError as error:
            # The op was not executed: the ledger or the store cannot be written.
            plain = OpError(error.message, hint=error.hint, code=error.code, retryable=error.retryable, op=message.op)
            return _error(message, plain)
        except Exception as error:  # noqa: BLE001  any failure of a dispatch becomes its answer
            self._report("op.failed", f"{message.op} raised {type(error).__name__}", message.call, message.op)
            return _error(message, OpError(f"{message.op} failed in the host", op=message.op))


def _error(message: _wire.DispatchMessage, error: OpError) -> bytes:
    try:
        return _wire.dispatch_error(message.id, error.as_dict())
    except Unsendable:
        plain = OpError(f"{message.op} failed, and its error cannot be sent", op=message.op)
        return _wire.dispatch_error(message.id, plain.as_dict())
