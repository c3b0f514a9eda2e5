"""The dispatches of one worker: admitted or refused, run each in a task of its own, answered exactly once."""

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
from ._pending import PendingCall, PendingDispatch
from ._turns import Turns
from .runtime import Unsendable

_MAX_IN_FLIGHT = 256
_MAX_HELD = 32 << 20
_MAX_UNREAD = 128 << 20


class Dispatching:
    """What a worker has asked for.

    Args:
        tasks: runs the dispatches; its end cancels them.
        share: of the host's time.
        send: sends an answer to the worker.
        report: told what was refused or went wrong: code, message, call, op.
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

    def take(self, call: PendingCall | None, message: _wire.DispatchMessage, size: int) -> bytes | None:
        """Start a dispatch; ``call`` is ``None`` if it has ended. Returns the answer if it is refused.

        Args:
            call: that asks for it.
            message: as it came.
            size: bytes of the line that it came in.

        Raises:
            ProtocolViolation: its id was used before.
        """
        if message.number <= self._last:
            raise ProtocolViolation(f"the dispatch id {message.id} is not new")
        self._last = message.number
        if call is None:
            problem = f"{message.op} was asked for by a call that has ended"
            return self._refuse(message, OpError(problem, code="call.finished", op=message.op))
        silent = call.spec.handler.is_fire_and_forget(message.op)
        refusal = call.admit(message.op, silent=silent)
        if refusal is None:
            self._start(PendingDispatch(call, message, size), silent=silent)
            return None
        line = self._refuse(message, refusal)
        return None if silent else line

    def take_progress(self, call: PendingCall, message: _wire.ProgressMessage, size: int) -> None:
        """Start the dispatch that a progress message stands for. Nobody waits for an answer."""
        if call.admit("progress.report", silent=True) is None:
            # Such messages are counted by call, and the worker may have others.
            identifier = f"p-{call.total}-{message.call}"
            request = _wire.DispatchMessage(message.call, identifier, 0, "progress.report", message.params)
            self._start(PendingDispatch(call, request, size), silent=True)

    def cancel(self, message: _wire.CancelMessage) -> None:
        """Cancel a dispatch that its skill gave up; one that has just been answered stays answered.

        Raises:
            ProtocolViolation: there never was such a dispatch.
        """
        dispatch = self._running.get(message.dispatch)
        if dispatch is not None:
            dispatch.scope.cancel()
        elif not 0 < message.number <= self._last:
            raise ProtocolViolation("it cancels a dispatch that it never asked for")

    @property
    def is_full(self) -> bool:
        """Whether so many are in flight, or what they hold is so large, that the worker is not read for now."""
        return len(self._running) >= _MAX_IN_FLIGHT or self._held >= _MAX_HELD

    async def wait_for_room(self) -> None:
        """Wait until enough of them have ended."""
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
        """Run what nobody waits for one after the other, so that progress arrives in its order."""
        try:
            while call.silent:
                await self._turns.run(self._outcome(call.silent[0]))
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
            # Nothing was executed: the ledger or the store can't be written.
            told = OpError(error.message, hint=error.hint, code=error.code, retryable=error.retryable, op=message.op)
            return _error(message, told)
        except Exception as error:  # noqa: BLE001  one dispatch's failure is one answer, whatever it was
            self._report("op.failed", f"{message.op} raised {type(error).__name__}", message.call, message.op)
            return _error(message, OpError(f"{message.op} failed in the host", op=message.op))


def _error(message: _wire.DispatchMessage, error: OpError) -> bytes:
    try:
        return _wire.dispatch_error(message.id, error.as_dict())
    except Unsendable:
        plain = OpError(f"{message.op} failed, and its error can't be sent", op=message.op)
        return _wire.dispatch_error(message.id, plain.as_dict())
