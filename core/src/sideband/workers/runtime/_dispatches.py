"""Dispatches to the host, and the futures that wait for their answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from time import monotonic
from typing import Any

from ._channel import HostChannel
from ._codec import Unsendable, encode
from ._context import CurrentCall
from ._conversion import encode_converted
from ._op_errors import OpError, OpParamsInvalid, OpTimeout

_Pending = tuple["asyncio.Future[Any]", str, float]
"""The future of an answer, the op, and the time at which it fails."""


class Dispatches:
    """All dispatches of a worker. Any thread with a running event loop may use it.

    Args:
        channel: the connection to the host.
        loop: the runtime's event loop.
        ceiling: the time in seconds after which an unanswered dispatch fails.
    """

    def __init__(self, channel: HostChannel, loop: asyncio.AbstractEventLoop, *, ceiling: float) -> None:
        self._channel = channel
        self._loop = loop
        self._ceiling = ceiling
        self._last = 0
        self._lock = threading.Lock()
        # The oldest first. One timer serves all of them, because a timer for each takes longer than its dispatch.
        self._pending: dict[str, _Pending] = {}
        self._is_timed = False

    async def run(self, call: CurrentCall, op: str, params: Mapping[str, Any]) -> Any:
        """Dispatch an op and wait for its answer.

        Raises:
            OpError: if the op was denied, failed, or was not answered in time.
        """
        if not call.slots.take():
            await call.slots.wait()
        dispatch = ""
        try:
            answer = asyncio.get_running_loop().create_future()
            dispatch = self._send(call, op, params, answer)
            return await answer
        except asyncio.CancelledError:
            self._channel.send(encode({"__type__": "cancel", "__dispatch_id__": dispatch}))
            raise
        finally:
            self._pending.pop(dispatch, None)
            call.slots.release()

    def notify(self, call: CurrentCall, op: str, params: Mapping[str, Any]) -> None:
        """Dispatch an op without waiting for an answer."""
        self._send(call, op, params, None)

    def _send(self, call: CurrentCall, op: str, params: Mapping[str, Any], answer: asyncio.Future[Any] | None) -> str:
        # The host requires increasing ids, so create and send an id under one lock.
        with self._lock:
            dispatch = f"d-{self._last + 1}"
            message = {
                "__type__": "dispatch",
                "__id__": call.id,
                "__dispatch_id__": dispatch,
                "__caps__": call.capabilities,
            }
            try:
                line = encode_converted(
                    lambda params: {**message, "__dispatch__": {"op": op, "params": params}}, params
                )
            except Unsendable as problem:
                raise OpParamsInvalid(
                    f"cannot send the parameters of {op}: {problem}", code="op.params", op=op
                ) from None
            self._last += 1
            if answer is not None:
                self._pending[dispatch] = (answer, op, monotonic() + self._ceiling)
                if not self._is_timed:
                    self._is_timed = True
                    self._loop.call_soon_threadsafe(self._give_up)
            self._channel.send(line)
        return dispatch

    def answer(self, message: dict[str, Any]) -> None:
        """Handle a ``dispatch_result``. Ignore it if the skill no longer waits for it."""
        waiting = self._pending.pop(message["__dispatch_id__"], None)
        if waiting is None:
            return
        answer, op, _ = waiting
        error = OpError.from_wire(message["__error__"], op) if "__error__" in message else None
        self._end(answer, message.get("payload"), error)

    def _end(self, answer: asyncio.Future[Any], payload: Any, error: OpError | None) -> None:
        loop = answer.get_loop()
        if loop is self._loop:
            _resolve(answer, payload, error)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, answer, payload, error)

    def _give_up(self) -> None:
        """End the dispatches that were not answered in time, and come back when the next one is due."""
        with self._lock:
            for answer, op, due in list(self._pending.values()):
                rest = due - monotonic()
                if rest > 0:
                    self._loop.call_later(rest, self._give_up)
                    return
                problem = f"the host did not answer {op} within {self._ceiling:g} s"
                self._end(answer, None, OpTimeout(problem, code="op.unanswered", op=op, retryable=True))
            self._is_timed = False


def _resolve(answer: asyncio.Future[Any], payload: Any, error: OpError | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(payload)
    else:
        answer.set_exception(error)
