"""Dispatches to the host, and the futures that wait for their answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

from ._channel import HostChannel
from ._codec import Unsendable, encode
from ._context import CurrentCall
from ._conversion import encode_converted
from ._errors import OpError


class Dispatches:
    """All dispatches of a worker. Any thread with a running event loop may use it.

    Args:
        channel: the connection to the host.
        ceiling: the time in seconds after which an unanswered dispatch fails.
    """

    def __init__(self, channel: HostChannel, *, ceiling: float) -> None:
        self._channel = channel
        self._ceiling = ceiling
        self._last = 0
        self._lock = threading.Lock()
        self._pending: dict[str, tuple[asyncio.Future[Any], str]] = {}

    async def run(self, call: CurrentCall, op: str, params: Mapping[str, Any]) -> Any:
        """Dispatch an op and wait for its answer.

        Raises:
            OpError: if the op was denied, failed, or was not answered in time.
        """
        await call.slots.acquire()
        try:
            return await self._ask(call, op, params)
        finally:
            call.slots.release()

    def notify(self, call: CurrentCall, op: str, params: Mapping[str, Any]) -> None:
        """Dispatch an op without waiting for an answer."""
        self._send(call, op, params, None)

    async def _ask(self, call: CurrentCall, op: str, params: Mapping[str, Any]) -> Any:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        dispatch = self._send(call, op, params, answer)
        ceiling = loop.call_later(self._ceiling, _give_up, answer, op, self._ceiling)
        try:
            return await answer
        except asyncio.CancelledError:
            self._channel.send(encode({"__type__": "cancel", "__dispatch_id__": dispatch}))
            raise
        finally:
            ceiling.cancel()
            self._pending.pop(dispatch, None)

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
                raise OpError(f"cannot send the parameters of {op}: {problem}", code="op.params", op=op) from None
            self._last += 1
            if answer is not None:
                self._pending[dispatch] = (answer, op)
            self._channel.send(line)
        return dispatch

    def answer(self, message: dict[str, Any]) -> None:
        """Handle a ``dispatch_result``. Ignore it if the skill no longer waits for it."""
        waiting = self._pending.pop(message["__dispatch_id__"], None)
        if waiting is None:
            return
        answer, op = waiting
        error = OpError.from_wire(message["__error__"], op) if "__error__" in message else None
        loop = answer.get_loop()
        if loop is asyncio.get_running_loop():
            _resolve(answer, message.get("payload"), error)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, answer, message.get("payload"), error)


def _resolve(answer: asyncio.Future[Any], payload: Any, error: OpError | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(payload)
    else:
        answer.set_exception(error)


def _give_up(answer: asyncio.Future[Any], op: str, ceiling: float) -> None:
    if not answer.done():
        answer.set_exception(
            OpError(f"the host did not answer {op} within {ceiling:g} s", code="op.unanswered", op=op, retryable=True)
        )
