"""Feeds a started program, reads its output, and enforces its limits."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

import anyio
from anyio.lowlevel import checkpoint
from attrs import define, field, frozen
from sideband.workers import ProgramProcess

STREAMS = ("stdout", "stderr")
_CHUNK = 65_536
# After the exit, wait at most this long for end-of-file, because another process may keep the pipes open.
_DRAIN_SECONDS = 1.0


@frozen
class Ended:
    """The end of a program.

    Args:
        code: the exit code, negative for a signal; ``None`` if the timeout expired.
        flooded: whether it was killed because it printed too much.
    """

    code: int | None
    flooded: bool = False


@define(eq=False)
class ProgramRun:
    """A running program.

    Args:
        program: the process; the caller must close it.
        total: the maximum number of bytes of both streams.
        take: called with each output of a stream.
        end: called when a stream has ended or is no longer read.
    """

    program: ProgramProcess
    total: int
    take: Callable[[str, bytes], Awaitable[None]]
    end: Callable[[str], None]
    _printed: int = field(init=False, default=0)
    _flooded: bool = field(init=False, default=False)

    async def finish(self, data: bytes | None, seconds: float) -> Ended:
        """Write the input and read the output until the program exits or exceeds a limit, then kill the rest of it."""
        code: int | None = None
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as tasks:
                readers = {name: anyio.Event() for name in STREAMS}
                for name, done in readers.items():
                    tasks.start_soon(self._read, name, getattr(self.program, name), done)
                tasks.start_soon(self._feed, data)
                code = await self.program.wait()
                with anyio.move_on_after(_DRAIN_SECONDS):
                    for done in readers.values():
                        await done.wait()
                tasks.cancel_scope.cancel()
        self.program.kill()
        return Ended(code, self._flooded)

    async def _feed(self, data: bytes | None) -> None:
        """Write the input, as fast as the program reads it."""
        view = memoryview(data or b"")
        try:
            while view:
                await anyio.wait_writable(self.program.stdin)
                view = view[os.write(self.program.stdin, view[:_CHUNK]) :]
        except (BrokenPipeError, anyio.ClosedResourceError):
            # The program has closed its input.
            pass
        self.program.end_input()

    async def _read(self, name: str, descriptor: int, done: anyio.Event) -> None:
        try:
            while data := await _read_chunk(descriptor):
                self._printed += len(data)
                if self._printed > self.total:
                    self._flooded = True
                    self.program.kill()
                await self.take(name, data)
                if self._flooded:
                    break
        finally:
            self.end(name)
        done.set()


async def _read_chunk(descriptor: int) -> bytes:
    """Read the next bytes; empty at the end of the stream."""
    while True:
        await anyio.wait_readable(descriptor)
        # Yield even if the descriptor is always readable, so that other tasks can run.
        await checkpoint()
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:
            continue
