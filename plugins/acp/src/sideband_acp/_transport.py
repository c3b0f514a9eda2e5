"""The messages of a client, as the connection of the SDK sends and receives them.

The SDK expects a client that follows the protocol. What does not is answered or dropped here.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NoReturn

import anyio
from acp import RequestError
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from attrs import define, field
from sideband_serving import Lines, LineTooLong

_LONGEST_NAME = 200
_CANCEL = "session/cancel"
_META = ("_meta", "field_meta")
_INVALID, _PARAMS, _INTERNAL = -32600, -32602, -32603
_log = logging.getLogger("sideband.acp")


@define
class _Waiting:
    """A message that waits to be written."""

    data: bytes
    written: anyio.Event = field(factory=anyio.Event)


class _Rejected(Exception):
    """A message that does not follow the protocol."""

    def __init__(self, error: RequestError, request: Any = None) -> None:
        super().__init__()
        self.error = error
        self.request = request


@define(eq=False)
class AcpTransport:
    """The messages of one client.

    Args:
        lines: the lines of the client.
        requests: the maximum number of requests in progress.
        seconds: how long requests in progress may take to be answered once the client has closed its end.
        on_end: called once it has.
    """

    lines: Lines
    requests: int
    seconds: float
    on_end: Callable[[], Awaitable[None]]
    _reading: AsyncIterator[bytes] | None = field(default=None, init=False)
    _open: set[str | int] = field(factory=set, init=False)
    _answered: anyio.Event = field(factory=anyio.Event, init=False)
    _out: MemoryObjectSendStream[_Waiting] = field(init=False)
    _written: MemoryObjectReceiveStream[_Waiting] = field(init=False)
    _left: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._out, self._written = anyio.create_memory_object_stream[_Waiting](math.inf)

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message of the client, or ``None`` once there are no more."""
        if self._reading is None:
            self._reading = self.lines.read()
        try:
            async for line in self._reading:
                try:
                    message = self._checked(line)
                except _Rejected as rejected:
                    if rejected.request is not _NO_ANSWER:
                        await self._refuse(rejected)
                else:
                    return message
        except LineTooLong:
            _log.warning("the client sent a message of more than %s bytes", f"{self.lines.largest:,}")
        except ConnectionError:
            return None
        await self.on_end()
        with anyio.move_on_after(self.seconds):
            while self._open:
                self._answered = anyio.Event()
                await self._answered.wait()
        return None

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message, and return once it is written. The order is that of the calls.

        Raises:
            ConnectionError: if the client has left.
        """
        if self._left:
            raise ConnectionError("the client has left")
        waiting = _Waiting(_encoded(message))
        self._out.send_nowait(waiting)
        await waiting.written.wait()
        if "method" not in message:
            self._open.discard(message.get("id", ""))
            self._answered.set()

    async def close(self) -> None:
        """Do nothing: who has claimed the streams gives them back."""

    async def write(self) -> None:
        """Write what is sent, as fast as the client reads, until the client leaves."""
        try:
            async for waiting in self._written:
                await self.lines.write(waiting.data)
                waiting.written.set()
        except OSError:
            _log.warning("the client has left")
        finally:
            self._left = True
            self._out.close()
            waiting_still = self._written.statistics().current_buffer_used
            for _ in range(waiting_still):
                self._written.receive_nowait().written.set()
            self._written.close()

    async def _refuse(self, rejected: _Rejected) -> None:
        answer = {"jsonrpc": "2.0", "id": rejected.request, "error": rejected.error.to_error_obj()}
        self._out.send_nowait(_Waiting(_encoded(answer)))

    def _checked(self, line: bytes) -> dict[str, Any]:
        """Return a message that the SDK can read.

        Raises:
            _Rejected: if the client sent something else.
        """
        try:
            message = json.loads(line, parse_constant=_no_number)
        except (ValueError, RecursionError):
            raise _Rejected(RequestError.parse_error()) from None
        if not isinstance(message, dict):
            raise _Rejected(_invalid("a message is one object; batches are not supported"))
        if "method" not in message:
            return _checked_answer(message)
        return self._checked_request(message)

    def _checked_request(self, message: Mapping[str, Any]) -> dict[str, Any]:
        method: Any = message["method"]
        request: Any = message.get("id")
        if "id" in message and not _is_id(request):
            raise _Rejected(_invalid(f"an id is a number, or a text of up to {_LONGEST_NAME} characters"))
        answered = request if "id" in message else _NO_ANSWER
        if not isinstance(method, str) or len(method) > _LONGEST_NAME:
            raise _Rejected(_invalid("a method is a short text"), answered)
        params = message.get("params")
        if params is not None and not isinstance(params, dict):
            raise _Rejected(RequestError(_PARAMS, "parameters are an object"), answered)
        # The SDK passes what is in `_meta` as arguments, where it could replace those that it has checked.
        checked = {name: value for name, value in (params or {}).items() if name not in _META}
        known = {"jsonrpc": "2.0", "method": method, "params": checked}
        if answered is _NO_ANSWER:
            if method != _CANCEL:
                raise _Rejected(RequestError.method_not_found(method), _NO_ANSWER)
            return known
        if answered in self._open:
            raise _Rejected(_invalid("a request with this id is in progress"), answered)
        if len(self._open) >= self.requests:
            raise _Rejected(RequestError(_INTERNAL, f"more than {self.requests} requests at the same time"), answered)
        self._open.add(answered)
        return {**known, "id": answered}


_NO_ANSWER: Any = object()


def _checked_answer(message: Mapping[str, Any]) -> dict[str, Any]:
    request = message.get("id")
    if not isinstance(request, int) or isinstance(request, bool):
        raise _Rejected(_invalid("an answer has the id of a request"), _NO_ANSWER)
    if "error" not in message:
        return {"id": request, "result": message.get("result")}
    error = message["error"] if isinstance(message["error"], dict) else {}
    return {"id": request, "error": {"code": _INTERNAL, "message": str(error.get("message", ""))[:_LONGEST_NAME]}}


def _is_id(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_NAME
    return isinstance(value, int) and not isinstance(value, bool)


def _invalid(problem: str) -> RequestError:
    return RequestError(_INVALID, f"invalid request: {problem}")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON")


def _encoded(message: Mapping[str, Any]) -> bytes:
    error = message.get("error")
    if isinstance(error, dict) and isinstance(data := error.get("data"), dict) and "errors" in data:
        # The SDK repeats the whole input in each of them.
        errors = [{name: one.get(name) for name in ("loc", "msg", "type")} for one in data["errors"]]
        message = {**message, "error": {**error, "data": {"errors": errors}}}
    return json.dumps(message, separators=(",", ":"), default=str).encode()
