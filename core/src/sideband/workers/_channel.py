"""The host's end of a worker's socket. Whole lines go out, bytes come in, and nobody waits for ever.

On asyncio the socket stays registered with the loop, which saves two system calls a message over
``anyio.wait_readable``; elsewhere anyio waits. Everything above this module is the same on both.
"""

from __future__ import annotations

import asyncio
from collections import deque
from socket import socket
from typing import Protocol

import anyio

__all__ = ["Channel", "WriteTimeout", "open_channel"]

_CHUNK = 65_536
_ENOUGH = 4


class WriteTimeout(Exception):
    """The worker does not read."""


class _Reader(Protocol):
    async def receive(self) -> bytes: ...

    def close(self) -> None: ...


class Channel:
    """One connection; owns the socket.

    Args:
        sock: connected and non-blocking.
        reader: waits for what arrives.
        write_timeout: seconds that one line may take to be taken by the worker.
    """

    def __init__(self, sock: socket, reader: _Reader, *, write_timeout: float) -> None:
        self._socket = sock
        self._reader = reader
        self._write_timeout = write_timeout
        self._writing = anyio.Lock()
        self._writers = 0
        self._closed = False

    async def receive(self) -> bytes:
        """Some bytes; none once the worker has closed its end."""
        return await self._reader.receive()

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
            self._reader.close()
            anyio.notify_closing(self._socket)
            self._socket.close()


def open_channel(sock: socket, *, write_timeout: float) -> Channel:
    """The channel of a socket, on the running event loop."""
    on_asyncio = anyio.get_cancelled_exc_class() is asyncio.CancelledError
    reader = _AsyncioReader(sock, asyncio.get_running_loop()) if on_asyncio else _AnyReader(sock)
    return Channel(sock, reader, write_timeout=write_timeout)


class _AnyReader:
    def __init__(self, sock: socket) -> None:
        self._socket = sock

    async def receive(self) -> bytes:
        while True:
            try:
                return self._socket.recv(_CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(self._socket)
            except OSError:
                return b""

    def close(self) -> None:
        pass


class _AsyncioReader:
    def __init__(self, sock: socket, loop: asyncio.AbstractEventLoop) -> None:
        self._socket = sock
        self._loop = loop
        self._chunks: deque[bytes] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._registered = False
        self._closed = False

    async def receive(self) -> bytes:
        while not self._chunks:
            if self._closed:
                return b""
            if not self._registered:
                self._loop.add_reader(self._socket, self._readable)
                self._registered = True
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._chunks.popleft()

    def _readable(self) -> None:
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._chunks.append(data)
        if not data or len(self._chunks) >= _ENOUGH:
            # Back-pressure: what is not taken stays in the socket, and in the end with the worker.
            self._unregister()
        if not data:
            self._closed = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _unregister(self) -> None:
        if self._registered:
            self._registered = False
            self._loop.remove_reader(self._socket)

    def close(self) -> None:
        self._unregister()
        self._closed = True
        self._wake()
