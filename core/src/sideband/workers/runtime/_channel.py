"""The worker's end of the wire. It reads on the event loop, writes from any thread, and never blocks."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable

from ._codec import LineBuffer

_CHUNK = 65_536
_CROWDED = 1 << 20


class HostChannel:
    """A line-based connection over descriptors that the runtime owns until the process ends.

    Args:
        read: the descriptor to read the host's lines from.
        write: the descriptor to write lines to. It may be the same.
        loop: the runtime's event loop.
        on_line: called on the loop with each line.
        on_end: called on the loop when the host is gone, with a reason if it violated the protocol.
    """

    def __init__(
        self,
        read: int,
        write: int,
        loop: asyncio.AbstractEventLoop,
        on_line: Callable[[bytes], None],
        on_end: Callable[[str], None],
    ) -> None:
        self._read = read
        self._write = write
        self._loop = loop
        self._on_line = on_line
        self._on_end = on_end
        self._lines = LineBuffer()
        self._unsent = bytearray()
        self._all_sent: asyncio.Future[None] | None = None
        # Reentrant, because a finalizer that prints may run during `send`.
        self._lock = threading.RLock()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        loop.add_reader(read, self._readable)

    @property
    def crowded(self) -> bool:
        """Whether the host reads so slowly that log lines should be dropped."""
        return len(self._unsent) > _CROWDED

    def send(self, line: bytes) -> bool:
        """Send a complete line, in the order of the calls, and return whether the host can read it now. Thread-safe."""
        with self._lock:
            if not self._unsent:
                sent = self._write_some(line)
                if sent == len(line):
                    return True
                self._unsent += line[sent:]
                self._loop.call_soon_threadsafe(self._loop.add_writer, self._write, self._writable)
            else:
                self._unsent += line
        return False

    async def wait_until_sent(self, seconds: float) -> bool:
        """Wait at most so long until all lines are sent, and return whether they are. Only for tasks of the loop."""
        if self._all_sent is None:
            self._all_sent = self._loop.create_future()
        sent, _ = await asyncio.wait([self._all_sent], timeout=seconds)
        return bool(sent)

    def _write_some(self, data: bytes | bytearray) -> int:
        try:
            return os.write(self._write, data)
        except BlockingIOError:
            return 0
        except OSError:
            # The host is gone. The reader detects that and ends the process.
            return len(data)

    def _writable(self) -> None:
        with self._lock:
            del self._unsent[: self._write_some(self._unsent)]
            if not self._unsent:
                self._loop.remove_writer(self._write)
                if self._all_sent is not None:
                    self._all_sent.set_result(None)
                    self._all_sent = None

    def _readable(self) -> None:
        try:
            data = os.read(self._read, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._read)
            self._on_end("")
            return
        try:
            for line in self._lines.feed(data):
                self._on_line(line)
        except ValueError as error:
            self._loop.remove_reader(self._read)
            self._on_end(str(error))
