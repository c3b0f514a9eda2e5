"""The output of a worker: pass it to its calls, with a limited rate and size."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from functools import partial

import anyio
from attrs import define, field

from ..sandboxing import WorkerProcess
from ._blocking import Stack
from ._errors import WorkerError, WorkerOverLimit
from ._host_time import TimeShare
from ._pending import PendingCall, PendingCalls
from ._watchdog import mebibytes
from .runtime import MAX_LINE, left_out

_CHUNK = 65_536
_BURST = 4 << 20
_BYTES_PER_SECOND = 10 << 20


class _LineSplitter:
    """A splitter of the bytes of a descriptor into lines of text."""

    __slots__ = ("_length", "_rest")

    def __init__(self) -> None:
        self._rest = bytearray()
        self._length = 0

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that are complete now."""
        *ends, rest = data.split(b"\n")
        lines = [self._end(end) for end in ends]
        self._continue(rest)
        return lines

    def close(self) -> list[str]:
        """Return the last line if it is incomplete."""
        return [self._end(b"")] if self._length else []

    def _continue(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length <= MAX_LINE:
            self._rest += piece
        else:
            # Discard the whole line: a truncated one may end with a part of a secret, which would not be redacted.
            self._rest.clear()

    def _end(self, piece: bytes) -> str:
        self._continue(piece)
        text = self._rest.decode("utf-8", "replace") if self._length <= MAX_LINE else left_out(self._length)
        self._rest.clear()
        self._length = 0
        return text


@define(eq=False, repr=False)
class _Rate:
    """A token bucket: reading is immediate until the burst is used up, then at a constant rate."""

    _at: float = field(factory=anyio.current_time, init=False)
    _tokens: float = field(default=_BURST, init=False)

    async def take(self, count: int) -> None:
        """Count bytes that have been read, and wait if they exceed the rate."""
        now = anyio.current_time()
        self._tokens = min(self._tokens + (now - self._at) * _BYTES_PER_SECOND, _BURST) - count
        self._at = now
        if self._tokens < 0:
            await anyio.sleep(-self._tokens / _BYTES_PER_SECOND)


@define(eq=False, repr=False)
class WorkerOutputs:
    """The output of one worker: standard output and error of the process, and the ``log`` messages of its calls.

    Args:
        process: the worker.
        calls: the running calls of the worker.
        limit: the maximum number of bytes that bypass the runtime. The runtime limits the output of each call.
        share: the worker's share of the host's time.
        stack: the reader of the stack that the worker prints on request, which is not part of its output.
        end: called with a factory for the error to end a worker that exceeds the limit.

    Attributes:
        done: set when both descriptors have reached their end.
    """

    _process: WorkerProcess
    _calls: PendingCalls
    _limit: int = field(kw_only=True)
    _share: TimeShare = field(kw_only=True)
    _stack: Stack = field(kw_only=True)
    _end: Callable[[Callable[[], WorkerError]], None] = field(kw_only=True)
    done: anyio.Event = field(factory=anyio.Event, init=False)
    _last_words: deque[str] = field(factory=partial(deque, maxlen=5), init=False)
    _printed: int = field(default=0, init=False)
    _rate: _Rate = field(factory=_Rate, init=False)

    @property
    def last_words(self) -> str:
        """The last lines of its standard error, for the message about its end."""
        return " / ".join(self._last_words)

    async def read(self) -> None:
        """Read both descriptors until they are closed."""
        async with anyio.create_task_group() as readers:
            readers.start_soon(self._read, self._process.stdout, "stdout")
            readers.start_soon(self._read, self._process.stderr, "stderr")
        self.done.set()

    async def _read(self, descriptor: int, stream: str) -> None:
        splitter = _LineSplitter()
        while data := await _read_some(descriptor):
            self._count(len(data))
            await self._take_lines(stream, splitter.feed(data))
            await self._rate.take(len(data))
        await self._take_lines(stream, splitter.close())

    async def _take_lines(self, stream: str, lines: list[str]) -> None:
        self._share.begin()
        for text in self._stack.without(lines) if stream == "stderr" else lines:
            self._take(stream, text)
            if self._share.lap():
                await self._share.rest()
                self._share.begin()

    def take_log(self, call: PendingCall | None, stream: str, text: str) -> None:
        """Handle a ``log`` message. ``call`` is ``None`` if it has no call, or if the call has ended."""
        if call is None:
            self._count(len(text))
            self._take(stream, text)
            return
        if not call.log.add(stream, text):
            # The runtime limits the output of a call, so this message bypassed it.
            self._count(len(text))
        self._remember(stream, text)

    def _take(self, stream: str, text: str) -> None:
        """Pass output without a call to all running calls. This is safe, because they have equal rights."""
        for call in self._calls:
            call.log.add(f"worker.{stream}", text)
        self._remember(stream, text)

    def _remember(self, stream: str, text: str) -> None:
        if stream == "stderr" and text.strip():
            # Do not truncate here: a truncated secret would not be redacted. The host truncates after redaction.
            self._last_words.append(text.strip())

    def _count(self, length: int) -> None:
        self._printed += length
        if self._printed > self._limit:
            self._end(partial(WorkerOverLimit, "output", mebibytes(self._printed), mebibytes(self._limit)))


async def _read_some(descriptor: int) -> bytes:
    while True:
        # Wait first, so that other tasks run while a worker floods its output.
        await anyio.wait_readable(descriptor)
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:
            continue
        except OSError:
            return b""
