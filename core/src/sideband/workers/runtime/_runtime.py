"""The runtime: receive calls, run each as a task, and send its result."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import gc
import math
import os
import selectors
import signal
import sys
import time
from collections.abc import Coroutine, Mapping
from contextvars import copy_context
from typing import Any

from ._channel import HostChannel
from ._codec import TooLarge, Unsendable, decode, encode
from ._context import CurrentCall, current_call, inherit_context
from ._conversion import encode_converted
from ._dispatches import Dispatches
from ._errors import NoWorker, SkillRefusal, cancelled_at, describe, failure
from ._modules import Modules
from ._output import Output, OutputAllowance

PROTOCOL = 1
"""The protocol version of this runtime."""

# Lower than the limits of the host, so that the note about dropped lines is within them.
_MAX_LINES = 9_999
_MAX_TEXT = 4_000_000
_CANCELLED = {"code": "call.cancelled", "message": "the call was cancelled"}

_active: Runtime | None = None


def running(op: str = "an op") -> tuple[Runtime, CurrentCall]:
    """Return the runtime and the current call.

    Args:
        op: the op to run, for the message.

    Raises:
        NoWorker: if this process is not a worker.
        RuntimeError: if the caller does not run inside a call.
    """
    call = current_call.get()
    if _active is None:
        raise NoWorker(op)
    if call is None:
        raise RuntimeError("ops can only be used inside a call; start this code from a tool")
    return _active, call


def serve(
    read: int, write: int, *, lockdown: Mapping[str, Any] | None = None, packages: str = "", ceiling: float = 1800.0
) -> None:
    """Serve the host until it closes the connection, then end the process.

    Args:
        read: the descriptor to read messages from.
        write: the descriptor to write messages to.
        lockdown: the result of the lockdown, for ``ready``.
        packages: the folder with the dependencies of the skill.
        ceiling: the time in seconds after which an unanswered dispatch fails in the skill.
    """
    Runtime(read, write, lockdown=lockdown, packages=packages, ceiling=ceiling).run()


class _Selector(selectors.DefaultSelector):
    """A selector that omits every second poll of a loop that has work to do. A call needs two such iterations."""

    _has_polled = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the events. Do not poll if the loop has work to do and the last poll was not omitted."""
        self._has_polled = timeout != 0 or not self._has_polled
        return super().select(timeout) if self._has_polled else []


class Runtime:
    """The runtime of the process. See ``serve`` for the arguments."""

    def __init__(
        self, read: int, write: int, *, lockdown: Mapping[str, Any] | None, packages: str, ceiling: float
    ) -> None:
        self._loop = asyncio.SelectorEventLoop(_Selector())
        self._loop.set_task_factory(_own_children)  # type: ignore[arg-type]
        self._channel = HostChannel(read, write, self._loop, self._take, self._end)
        self.dispatches = Dispatches(self._channel, self._loop, ceiling=ceiling)
        self._lockdown = lockdown
        self._calls: dict[str, CurrentCall] = {}
        self._modules = Modules(packages)
        self._greeted = False
        self._allowances: dict[str | None, OutputAllowance] = {}
        self._outputs = (Output("stdout", 1, self._log), Output("stderr", 2, self._log))

    def run(self) -> None:
        """Run until the host closes the connection. Never return."""
        global _active  # noqa: PLW0603  the SDK finds the runtime of its process here
        _active = self
        inherit_context()
        sys.stdout, sys.stderr = self._outputs
        # It works while Python code cannot run. By default, SIGURG is ignored.
        faulthandler.register(signal.SIGURG, file=2, all_threads=False)
        # What exists now stays, and collections during calls need not visit it.
        gc.freeze()
        asyncio.set_event_loop(self._loop)
        while True:
            # A child task that raises SystemExit stops the loop. Run it again for the other calls.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()

    def _end(self, problem: str) -> None:
        if problem:
            _print(f"sideband: the host violated the protocol: {problem}")
        # Not `sys.exit`, which would wait for the threads of skills.
        os._exit(2 if problem else 0)

    def _take(self, line: bytes) -> None:
        message = decode(line, trusted=True)
        try:
            kind = message["__type__"]
            if kind == "dispatch_result":
                self.dispatches.answer(message)
            elif kind == "call":
                self._start(message["__id__"], message["__call__"])
            elif kind == "cancel":
                self._cancel(message["__id__"])
            elif kind == "ping":
                self._channel.send(encode({"__type__": "pong", "number": message["number"]}))
            elif kind == "hello":
                self._greet()
            else:
                raise ValueError(f"unknown message type {kind!r}")
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"invalid message: {error!r}") from None

    def _greet(self) -> None:
        self._greeted = True
        ready = {"__type__": "ready", "version": PROTOCOL, "python": ".".join(map(str, sys.version_info[:3]))}
        self._channel.send(encode({**ready, "lockdown": dict(self._lockdown)} if self._lockdown is not None else ready))

    def _start(self, id: str, request: dict[str, Any]) -> None:  # noqa: A002  the name on the wire
        if id in self._calls:
            raise ValueError("duplicate call id")
        if time.monotonic() > request.get("begin_by", math.inf):
            # Refuse it before later messages are answered: after its next `pong`, the host may send the call again.
            self._channel.send(_late(id))
            return
        environment = request.get("env", {})
        call = CurrentCall(id, tuple(request.get("capabilities", ())), environment)
        _set_timezone(environment.get("timezone"))
        context = copy_context()
        context.run(current_call.set, call)
        # Bypass the task factory, because the call's own task is not one of its children.
        call.task = asyncio.Task(call.step(self._run, call, request), loop=self._loop, context=context)
        self._calls[id] = call

    async def _run(self, call: CurrentCall, request: dict[str, Any]) -> None:
        call.started = True
        try:
            begins = "begin_by" not in request or await self._begins(call, request["begin_by"])
            line = await self._result(call, request) if begins else _late(call.id)
        except SkillRefusal as refusal:
            line = _error(call, refusal.as_error())
        except BaseException as error:  # noqa: BLE001  SystemExit in a skill must end its own call only
            cancelled = call.cancelled and isinstance(error, asyncio.CancelledError)
            line = _error(call, {**_CANCELLED, **cancelled_at(error)} if cancelled else failure(error))
        self._finish(call, line)

    async def _begins(self, call: CurrentCall, begin_by: float) -> bool:
        """Report that a call begins, and return whether it may begin.

        The host assigns a call to another worker if it has read no report when ``begin_by`` has passed. Check the time
        after the report, so that the host has read it if the call begins.
        """
        line = encode({"__type__": "begun", "__id__": call.id})
        if self._channel.send(line) or await self._channel.wait_until_sent(begin_by - time.monotonic()):
            return time.monotonic() <= begin_by
        return False

    async def _result(self, call: CurrentCall, request: dict[str, Any]) -> bytes:
        name = request["function"]
        try:
            function = self._modules.function(request["module"], name, request.get("working_dir", ""))
        except SkillRefusal:
            raise
        except BaseException as error:  # noqa: BLE001  see above
            return _error(call, failure(error, code="skill.import"))
        try:
            running: Coroutine[Any, Any, Any] = function(**request.get("kwargs", {}))
        except TypeError as error:
            raise SkillRefusal(describe(error)) from None
        return _result(call, name, await running)

    def _finish(self, call: CurrentCall, line: bytes) -> None:
        for child in tuple(call.children):
            child.cancel()
        for output in self._outputs:
            output.end_call(call.id)
        self._end_logs(call)
        del self._calls[call.id]
        self._channel.send(line)

    def _cancel(self, id: str) -> None:  # noqa: A002  the name on the wire
        call = self._calls.get(id)
        if call is None or call.task is None:
            return
        call.cancelled = True
        call.task.cancel()
        if not call.started:
            self._finish(call, _error(call, _CANCELLED))

    def _log(self, call: str | None, stream: str, text: str) -> None:
        if not self._greeted:
            # The host did not send `hello`, so it does not support `log` messages.
            _print(text)
            return
        allowance = self._allowances.setdefault(call, OutputAllowance(_MAX_LINES, _MAX_TEXT))
        if not allowance.take(text) or self._channel.crowded:
            allowance.dropped += 1
            return
        if allowance.dropped:
            text = f"[{allowance.dropped:,} lines dropped] {text}"
            allowance.dropped = 0
        self._send_log(call, stream, text)

    def _end_logs(self, call: CurrentCall) -> None:
        """Report the number of dropped lines of the call. Also reset the allowance for output outside calls."""
        self._allowances.pop(None, None)
        allowance = self._allowances.pop(call.id, None)
        if allowance is not None and allowance.dropped:
            self._send_log(call.id, "stderr", f"[{allowance.dropped:,} more lines dropped]")

    def _send_log(self, call: str | None, stream: str, text: str) -> None:
        message = {"__type__": "log", "stream": stream, "text": text.encode("utf-8", "backslashreplace").decode()}
        self._channel.send(encode({**message, "__id__": call} if call is not None else message))


def _late(call: str) -> bytes:
    return encode({"__type__": "late", "__id__": call})


def _result(call: CurrentCall, name: str, value: Any) -> bytes:
    def message(value: Any) -> dict[str, Any]:
        fields = value if isinstance(value, dict) and set(value) != {"value"} else {"value": value}
        reserved = [key for key in fields if isinstance(key, str) and key.startswith("__")]
        if reserved:
            raise SkillRefusal(f"`{name}` returned the reserved key `{reserved[0]}`; keys must not begin with `__`")
        return {"__type__": "result", "__id__": call.id, **fields}

    try:
        return encode_converted(message, value)
    except Unsendable as problem:
        topic = "size" if isinstance(problem, TooLarge) else ""
        raise SkillRefusal(f"cannot send the result of `{name}`: {problem}", topic=topic) from None


def _error(call: CurrentCall, error: dict[str, Any]) -> bytes:
    return encode({"__type__": "result", "__id__": call.id, "__error__": error})


def _own_children(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
) -> asyncio.Task[Any]:
    """Create a task that is cancelled when the call that started it ends."""
    call = current_call.get()
    if call is None:
        return asyncio.Task(coroutine, loop=loop, **options)

    def end(task: asyncio.Task[Any]) -> None:
        call.children.discard(task)
        # If the task was cancelled before its first step, the coroutine was not awaited.
        coroutine.close()

    task = asyncio.Task(call.step(lambda: coroutine), loop=loop, **options)
    call.children.add(task)
    task.add_done_callback(end)
    return task


def _set_timezone(name: str | None) -> None:
    # The timezone is per process. Hosts send the same one to all calls of a worker.
    if name and os.environ.get("TZ") != name:
        os.environ["TZ"] = name
        time.tzset()


def _print(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, text.encode("utf-8", "backslashreplace") + b"\n")
