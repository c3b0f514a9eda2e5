"""Runs one program: writes its input, reads its output, and enforces its limits."""

from __future__ import annotations

import codecs
import os
import time

import anyio
from anyio.lowlevel import checkpoint
from attrs import define, field
from sideband.ops import OpContext
from sideband.tools import emit_tool_progress
from sideband.workers import IsolationUnavailable, ProgramProcess, WorkerStartFailed

from ._config import Config
from ._errors import ShellIsolation, ShellOutput, ShellStart, ShellTimeout
from ._kept_output import KeptOutput
from ._models import ShellRunParams, ShellRunResult
from ._program_request import check_egress, check_size, program_request, resolve_program, seconds_of
from ._result import result_of
from ._variables import refuse_variables

_CHUNK = 65_536
_SECONDS_BETWEEN_PROGRESS = 0.25
# After the exit, wait at most this long for end-of-file, because another process may keep the pipes open.
_DRAIN_SECONDS = 1.0


@define
class Ended:
    """The end of a program.

    Args:
        code: the exit code, negative for a signal; ``None`` if the timeout expired.
        flooded: whether it was killed because it printed too much.
    """

    code: int | None
    flooded: bool = False


@define(eq=False)
class RunningProgram:
    """A running program.

    Args:
        program: the process; the caller must close it.
        ctx: receives output and progress.
        limit: the number of bytes of each stream to keep.
        total: the maximum number of bytes of both streams.
    """

    program: ProgramProcess
    ctx: OpContext
    limit: int
    total: int
    stdout: KeptOutput = field(init=False)
    stderr: KeptOutput = field(init=False)
    _flooded: bool = field(init=False, default=False)
    _last_progress: float = field(init=False, default=0.0)

    def __attrs_post_init__(self) -> None:
        self.stdout, self.stderr = KeptOutput(self.limit), KeptOutput(self.limit)

    async def finish(self, data: bytes | None, seconds: float) -> Ended:
        """Write the input and read the output until the program exits or exceeds a limit, then kill the rest of it."""
        code: int | None = None
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as tasks:
                readers = [anyio.Event(), anyio.Event()]
                tasks.start_soon(self._read, "stdout", self.program.stdout, self.stdout, readers[0])
                tasks.start_soon(self._read, "stderr", self.program.stderr, self.stderr, readers[1])
                tasks.start_soon(self._feed, data)
                code = await self.program.wait()
                with anyio.move_on_after(_DRAIN_SECONDS):
                    for reader in readers:
                        await reader.wait()
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

    async def _read(self, name: str, descriptor: int, kept: KeptOutput, done: anyio.Event) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        try:
            while data := await _read_chunk(descriptor):
                kept.feed(data)
                text = decoder.decode(data)
                emit_tool_progress(text, name)
                if self.stdout.total + self.stderr.total > self.total:
                    self._flooded = True
                    self.program.kill()
                    break
                await self._report(name, kept, text)
        finally:
            emit_tool_progress(decoder.decode(b"", final=True), name)
        done.set()

    async def _report(self, name: str, kept: KeptOutput, text: str) -> None:
        """Emit parts of the result, at most as much as it contains, and report progress from time to time."""
        if text and kept.total <= kept.limit:
            await self.ctx.emit({"type": "output", "stream": name, "text": text})
        now = anyio.current_time()
        if now - self._last_progress >= _SECONDS_BETWEEN_PROGRESS:
            self._last_progress = now
            # Do not truncate it here: the host redacts secrets first, and would not recognize a partial one.
            line = next((line for line in reversed(text.splitlines()) if line.strip()), "")
            await self.ctx.progress(current=self.stdout.total + self.stderr.total, message=line, unit="bytes")


async def run_program(params: ShellRunParams, ctx: OpContext) -> ShellRunResult:
    """Check the request, and run the program until it exits."""
    config: Config = ctx.config
    refuse_variables(params.env)
    found, places = await resolve_program(params, ctx)
    check_egress(params, ctx)
    check_size(found, params)
    seconds = seconds_of(params, config)
    started = time.monotonic()
    try:
        program = await ctx.launch(program_request(params, found, places, ctx))
    except IsolationUnavailable as error:
        raise ShellIsolation(error.message, error.hint) from error
    except WorkerStartFailed as error:
        raise ShellStart(error.message, error.hint) from error
    running = RunningProgram(program, ctx, config.max_output_bytes, config.max_total_bytes)
    try:
        ended = await running.finish(params.input_bytes, seconds)
    finally:
        await program.close()
    if ended.flooded:
        raise ShellOutput(params.binary, config.max_total_bytes)
    if ended.code is None and not params.stream:
        raise ShellTimeout(params.binary, seconds)
    return result_of(running.stdout, running.stderr, ended.code, time.monotonic() - started, ctx)


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
