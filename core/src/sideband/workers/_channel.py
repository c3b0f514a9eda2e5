"""The host's end of a worker's socket. It sends lines, receives bytes, and limits the time of each write.

On asyncio, the socket stays registered with the event loop and is read in a callback, which halves the cost of a
message. On trio, a task waits for it. The interface is the same on both.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from socket import MSG_PEEK, socket

import anyio

_CHUNK = 65_536


class WriteTimeout(Exception):
    """The worker did not read a message in time."""


Later = Callable[[], Awaitable[bool]]
Take = Callable[[bytes], Later | None]


class WorkerChannel:
    """The connection to a worker. It owns the socket.

    Args:
        sock: a connected, non-blocking socket.
        write_timeout: the maximum time that the worker may take to read one line, in seconds.
        send_left: called if the worker does not read gathered lines at once. It must start a task that awaits
            ``send_rest(b"", 0)``.
    """

    def __init__(self, sock: socket, *, write_timeout: float, send_left: Callable[[], None]) -> None:
        self._socket = sock
        self._write_timeout = write_timeout
        self._send_left = send_left
        self._writing = anyio.Lock()
        self._writers = 0
        self._closed = False
        self._gathered = bytearray()
        self._left = b""  # of gathered lines that the worker did not read at once

    async def pump(self, take: Take) -> None:
        """Pass received bytes to ``take`` until the worker closes its end.

        Args:
            take: called with received bytes. If it has to wait, it returns an async function. Reading pauses until that
                function returns, and stops if it returns ``False``. Exceptions are propagated.
        """
        while data := await self._receive():
            later = take(data)
            if later is not None and not await later():
                return

    async def _receive(self) -> bytes:
        while True:
            try:
                return self._socket.recv(_CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(self._socket)
            except OSError:
                return b""

    @property
    def is_drained(self) -> bool:
        """Whether all that the worker has sent so far has been received."""
        try:
            self._socket.recv(1, MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    async def send(self, line: bytes) -> None:
        """Send a complete line, in the order of the calls. A closed connection discards it.

        Raises:
            WriteTimeout: if the worker did not read it in time.
        """
        if (sent := self.send_now(line)) < len(line):
            await self.send_rest(line, sent)

    def send_now(self, line: bytes) -> int:
        """Send as much of a line as possible without waiting, and return the number of bytes.

        If it is less than the line, the caller must await ``send_rest`` at once.
        """
        if self._writers or self._left:
            return 0
        if self._gathered:
            self._gathered += line
            return len(line)
        return self._send_some(line)

    def send_soon(self, line: bytes) -> int:
        """Like ``send_now``, but on asyncio, the lines of one iteration of the event loop are sent together.

        Waking the worker for each of many lines costs more than to write them.
        """
        return self.send_now(line)

    async def send_rest(self, line: bytes, sent: int) -> None:
        """Send a line without its first ``sent`` bytes.

        Raises:
            WriteTimeout: if the worker did not read it in time.
        """
        self._writers += 1
        try:
            # A partial line would corrupt all later messages, so only the timeout may interrupt the write.
            with anyio.CancelScope(shield=True):
                await self._send_rest(line, sent)
        finally:
            self._writers -= 1

    async def _send_rest(self, line: bytes, sent: int) -> None:
        try:
            with anyio.fail_after(self._write_timeout):
                async with self._writing:
                    left, self._left = self._left, b""
                    rest = memoryview(left + line if left else line)[sent:]
                    while rest and not self._closed:
                        await anyio.wait_writable(self._socket)
                        rest = rest[self._send_some(rest) :]
        except TimeoutError:
            raise WriteTimeout from None
        except anyio.ClosedResourceError:
            return

    def _send_some(self, data: bytes | memoryview) -> int:
        if self._closed:
            return len(data)
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            # The worker is gone. The reader detects and reports that.
            return len(data)

    def close(self) -> None:
        """Close the connection. Idempotent."""
        if not self._closed:
            self._closed = True
            anyio.notify_closing(self._socket)
            self._socket.close()


@contextmanager
def _on_asyncio() -> Iterator[None]:
    """Make sniffio report asyncio in callbacks registered in the body.

    anyio uses sniffio if it is installed, and sniffio detects asyncio only in tasks.
    """
    sniffio = sys.modules.get("sniffio")
    if sniffio is None:
        yield
        return
    token = sniffio.current_async_library_cvar.set("asyncio")
    try:
        yield
    finally:
        sniffio.current_async_library_cvar.reset(token)


def open_channel(sock: socket, *, write_timeout: float, send_left: Callable[[], None]) -> WorkerChannel:
    """Return the channel of a socket for the running event loop."""
    on_asyncio = anyio.get_cancelled_exc_class() is asyncio.CancelledError
    channel = _AsyncioChannel if on_asyncio else WorkerChannel
    return channel(sock, write_timeout=write_timeout, send_left=send_left)


class _AsyncioChannel(WorkerChannel):
    """A channel that reads in an event loop callback. Waking a task for each message would double its cost."""

    _woken: asyncio.Future[Later | None] | None = None

    def send_soon(self, line: bytes) -> int:
        if self._writers or self._left:
            return 0
        if not self._gathered:
            asyncio.get_running_loop().call_soon(self._send_gathered)
        self._gathered += line
        if len(self._gathered) >= _CHUNK:
            self._send_gathered()
        return len(line)

    def _send_gathered(self) -> None:
        data = bytes(self._gathered)
        self._gathered.clear()
        if (sent := self._send_some(data)) < len(data):
            self._left = data[sent:]
            self._send_left()

    async def pump(self, take: Take) -> None:
        loop = asyncio.get_running_loop()
        keep = True
        while keep:
            self._woken = loop.create_future()
            with _on_asyncio():
                loop.add_reader(self._socket, self._readable, take)
            try:
                later = await self._woken
            finally:
                self._stop_reading()
            keep = later is not None and await later()

    def _readable(self, take: Take) -> None:
        woken = self._woken
        if woken is None or woken.done():
            return
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        try:
            later = take(data) if data else None
        except Exception as error:  # noqa: BLE001  `pump` raises it
            if not woken.done():
                woken.set_exception(error)
            return
        # `take` may have ended the pump.
        if (later is not None or not data) and not woken.done():
            # Pause reading until `later` is done. Unread data stays in the socket, so that the worker blocks.
            woken.set_result(later)

    def _stop_reading(self) -> None:
        if self._woken is not None:
            self._woken.get_loop().remove_reader(self._socket)
            if not self._woken.done():
                self._woken.set_result(None)
            self._woken = None

    def close(self) -> None:
        self._stop_reading()
        super().close()
