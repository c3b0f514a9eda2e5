"""What a worker prints: given to the calls that it belongs to, at a bounded rate, and not without end."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from functools import partial

import anyio
from attrs import define, field

from ..sandboxing import WorkerProcess
from ._errors import WorkerError, WorkerOverLimit
from ._host_time import TimeShare
from ._pending import PendingCall, PendingCalls
from ._watchdog import mebibytes
from .runtime import MAX_LINE, left_out

_CHUNK = 65_536
_BURST = 4 << 20
_BYTES_A_SECOND = 10 << 20


class _LineSplitter:
    """Cuts the bytes of a descriptor into lines of text."""

    __slots__ = ("_length", "_rest")

    def __init__(self) -> None:
        self._rest = bytearray()
        self._length = 0

    def feed(self, data: bytes) -> list[str]:
        """The lines that are whole now."""
        *ends, rest = data.split(b"\n")
        lines = [self._end(end) for end in ends]
        self._continue(rest)
        return lines

    def close(self) -> list[str]:
        """The line that was left open, if one was."""
        return [self._end(b"")] if self._length else []

    def _continue(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length <= MAX_LINE:
            self._rest += piece
        else:
            # Not even its beginning is kept: it may end with half a secret.
            self._rest.clear()

    def _end(self, piece: bytes) -> str:
        self._continue(piece)
        text = self._rest.decode("utf-8", "replace") if self._length <= MAX_LINE else left_out(self._length)
        self._rest.clear()
        self._length = 0
        return text


@define(eq=False, repr=False)
class _Rate:
    """A token bucket: bytes are taken as they come until the burst is used up, then at a steady rate."""

    _at: float = field(factory=anyio.current_time, init=False)
    _tokens: float = field(default=_BURST, init=False)

    async def take(self, count: int) -> None:
        """Count bytes that have been read, and wait as long as they were too many."""
        now = anyio.current_time()
        self._tokens = min(self._tokens + (now - self._at) * _BYTES_A_SECOND, _BURST) - count
        self._at = now
        if self._tokens < 0:
            await anyio.sleep(-self._tokens / _BYTES_A_SECOND)


@define(eq=False, repr=False)
class WorkerOutputs:
    """The output of one worker: what reaches its own descriptors, and the ``log`` messages of its calls.

    Args:
        process: the worker.
        calls: those that are in it.
        limit: bytes that it may print past the runtime, which bounds what each call prints.
        share: of the host's time.
        end: ends the worker that prints more, with what makes the error.

    Attributes:
        done: set when both descriptors have ended.
    """

    _process: WorkerProcess
    _calls: PendingCalls
    _limit: int = field(kw_only=True)
    _share: TimeShare = field(kw_only=True)
    _end: Callable[[Callable[[], WorkerError]], None] = field(kw_only=True)
    done: anyio.Event = field(factory=anyio.Event, init=False)
    _last_words: deque[str] = field(factory=partial(deque, maxlen=5), init=False)
    _printed: int = field(default=0, init=False)
    _rate: _Rate = field(factory=_Rate, init=False)

    @property
    def last_words(self) -> str:
        """The last lines of its standard error, for the message that says how it ended."""
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
        for text in lines:
            self._take(stream, text)
            if self._share.lap():
                await self._share.rest()
                self._share.begin()

    def take_log(self, call: PendingCall | None, stream: str, text: str) -> None:
        """Take the text of a ``log`` message; ``call`` is ``None`` if it belongs to none, or to one that has ended."""
        if call is None:
            self._count(len(text))
            self._take(stream, text)
            return
        if not call.log.add(stream, text):
            # The runtime bounds what a call prints: this was written past it.
            self._count(len(text))
        self._remember(stream, text)

    def _take(self, stream: str, text: str) -> None:
        """What belongs to no call goes to each that runs: they have equal rights."""
        for call in self._calls:
            call.log.add(f"worker.{stream}", text)
        self._remember(stream, text)

    def _remember(self, stream: str, text: str) -> None:
        if stream == "stderr" and text.strip():
            # Not cut here: the host does that once secrets are out of it, and does not recognise half of one.
            self._last_words.append(text.strip())

    def _count(self, length: int) -> None:
        self._printed += length
        if self._printed > self._limit:
            self._end(partial(WorkerOverLimit, "output", mebibytes(self._printed), mebibytes(self._limit)))


async def _read_some(descriptor: int) -> bytes:
    while True:
        # Waiting first lets the calls run while a worker floods its output.
        await anyio.wait_readable(descriptor)
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:
            continue
        except OSError:
            return b""
