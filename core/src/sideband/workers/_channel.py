"""The host's end of a worker's socket. Whole lines go out, bytes come in, and nobody waits for ever.

On asyncio the socket stays registered with the loop and is read in its callback, which halves what a message costs;
elsewhere a task waits. Everything above this module is the same on both.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from socket import socket

import anyio

_CHUNK = 65_536


class WriteTimeout(Exception):
    """The worker does not read."""


Later = Callable[[], Awaitable[bool]]
Take = Callable[[bytes], Later | None]


class WorkerChannel:
    """One connection; owns the socket.

    Args:
        sock: connected and non-blocking.
        write_timeout: seconds that one line may take to be taken by the worker.
    """

    def __init__(self, sock: socket, *, write_timeout: float) -> None:
        self._socket = sock
        self._write_timeout = write_timeout
        self._writing = anyio.Lock()
        self._writers = 0
        self._closed = False

    async def pump(self, take: Take) -> None:
        """Hand over what arrives, until the worker closes its end.

        Args:
            take: gets some bytes, at once. If what to do about them has to wait, it returns what does it; until that
                is done nothing more is read, and if it gives ``False``, nothing at all. What ``take`` raises comes out
                here.
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

    async def send(self, line: bytes) -> None:
        """Send a line, whole, in the order of the calls. A closed connection takes it and drops it.

        Raises:
            WriteTimeout: the worker did not take it in time.
        """
        sent = 0
        if not self._writers:
            sent = self._send_some(line)
            if sent == len(line):
                return
        self._writers += 1
        try:
            # Half a line would make the rest of the conversation unreadable, so only the time limit ends it.
            with anyio.CancelScope(shield=True):
                await self._send_rest(line, sent)
        finally:
            self._writers -= 1

    async def _send_rest(self, line: bytes, sent: int) -> None:
        try:
            with anyio.fail_after(self._write_timeout):
                async with self._writing:
                    rest = memoryview(line)[sent:]
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
            # The worker is gone; whoever reads learns how.
            return len(data)

    def close(self) -> None:
        """Close the connection. Can be called again."""
        if not self._closed:
            self._closed = True
            anyio.notify_closing(self._socket)
            self._socket.close()


@contextmanager
def _on_asyncio() -> Iterator[None]:
    """Let callbacks that are registered inside know that they run on asyncio.

    If sniffio is installed, anyio asks it, and sniffio sees that in tasks only.
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


def open_channel(sock: socket, *, write_timeout: float) -> WorkerChannel:
    """The channel of a socket, on the running event loop."""
    on_asyncio = anyio.get_cancelled_exc_class() is asyncio.CancelledError
    return (_AsyncioChannel if on_asyncio else WorkerChannel)(sock, write_timeout=write_timeout)


class _AsyncioChannel(WorkerChannel):
    """Reads in the loop's own callback: a task that has to be woken for each message would double what it costs."""

    _woken: asyncio.Future[Later | None] | None = None

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
        except Exception as error:  # noqa: BLE001  it is the pump's to raise
            if not woken.done():
                woken.set_exception(error)
            return
        # What was taken may have ended the pump.
        if (later is not None or not data) and not woken.done():
            # Nothing more is read until it is done: what is not taken stays in the socket, in the end with the worker.
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
