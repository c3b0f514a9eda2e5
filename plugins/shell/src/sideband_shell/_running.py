"""One command from its start to its end: fed, read, timed and closed."""

from __future__ import annotations

import codecs
import os
import time

import anyio
import anyio.to_thread
from anyio.lowlevel import checkpoint
from attrs import define, field
from sideband.ops import OpContext
from sideband.workers import IsolationUnavailable, ProgramProcess, WorkerStartFailed

from ._config import Config
from ._errors import ShellIsolation, ShellOutput, ShellStart, ShellTimeout
from ._kept_output import KeptOutput
from ._models import ShellRunParams, ShellRunResult
from ._program_request import check_egress, check_size, program_request, resolve_program, seconds_of
from ._result import result_of
from ._variables import refuse_variables

_PIECE = 65_536
_SECONDS_BETWEEN_PROGRESS = 0.25
# What is still in the pipes when all has ended is read, but nobody is waited for who holds them open elsewhere.
_DRAIN_SECONDS = 1.0


@define
class Ended:
    """How it ended.

    Args:
        code: its exit code, negative for a signal; ``None`` if it was ended since its time was over.
        flooded: whether it was ended since it printed too much.
    """

    code: int | None
    flooded: bool = False


@define(eq=False)
class RunningProgram:
    """A command that runs.

    Args:
        command: the process; somebody else closes it.
        ctx: hears how it goes.
        limit: how many bytes of each stream to keep.
        total: how many bytes it may print.
    """

    command: ProgramProcess
    ctx: OpContext
    limit: int
    total: int
    stdout: KeptOutput = field(init=False)
    stderr: KeptOutput = field(init=False)
    _flooded: bool = field(init=False, default=False)
    _told: float = field(init=False, default=0.0)

    def __attrs_post_init__(self) -> None:
        self.stdout, self.stderr = KeptOutput(self.limit), KeptOutput(self.limit)

    async def to_the_end(self, data: bytes | None, seconds: float) -> Ended:
        """Feed it and read it until it has ended, or ended it when its time is over or it prints too much."""
        code: int | None = None
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as tasks:
                readers = [anyio.Event(), anyio.Event()]
                tasks.start_soon(self._read, "stdout", self.command.stdout, self.stdout, readers[0])
                tasks.start_soon(self._read, "stderr", self.command.stderr, self.stderr, readers[1])
                tasks.start_soon(self._feed, data)
                code = await self.command.wait()
                with anyio.move_on_after(_DRAIN_SECONDS):
                    for reader in readers:
                        await reader.wait()
                tasks.cancel_scope.cancel()
        self.command.kill()
        return Ended(code, self._flooded)

    async def _feed(self, data: bytes | None) -> None:
        """Write its input, as fast as it reads."""
        view = memoryview(data or b"")
        try:
            while view:
                await anyio.wait_writable(self.command.stdin)
                view = view[os.write(self.command.stdin, view[:_PIECE]) :]
        except (BrokenPipeError, anyio.ClosedResourceError):
            # It does not want the rest.
            pass
        self.command.end_input()

    async def _read(self, name: str, descriptor: int, kept: KeptOutput, done: anyio.Event) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while data := await _piece(descriptor):
            kept.feed(data)
            if self.stdout.total + self.stderr.total > self.total:
                self._flooded = True
                self.command.kill()
                break
            await self._tell(name, kept, decoder.decode(data))
        done.set()

    async def _tell(self, name: str, kept: KeptOutput, text: str) -> None:
        """Parts for whoever waits for them, as much as is answered in the end; and now and then how far it is."""
        if text and kept.total <= kept.limit:
            await self.ctx.emit({"type": "output", "stream": name, "text": text})
        now = anyio.current_time()
        if now - self._told >= _SECONDS_BETWEEN_PROGRESS:
            self._told = now
            # Not cut here: the host cuts it once secrets are out of it, and does not recognise half of one.
            line = next((line for line in reversed(text.splitlines()) if line.strip()), "")
            await self.ctx.progress(current=self.stdout.total + self.stderr.total, message=line)


async def run_program(params: ShellRunParams, ctx: OpContext) -> ShellRunResult:
    """Check the request, and run the command to its end."""
    config: Config = ctx.config
    refuse_variables(params.env)
    program, grounds = await anyio.to_thread.run_sync(resolve_program, params, config, ctx.home)
    check_egress(params, ctx)
    check_size(program, params)
    seconds = seconds_of(params, config)
    started = time.monotonic()
    try:
        command = await ctx.launch(program_request(params, program, grounds, config))
    except IsolationUnavailable as error:
        raise ShellIsolation(error.message, error.hint) from error
    except WorkerStartFailed as error:
        raise ShellStart(error.message, error.hint) from error
    running = RunningProgram(command, ctx, config.max_output_bytes, config.max_total_bytes)
    try:
        ended = await running.to_the_end(params.input_bytes, seconds)
    finally:
        await command.close()
    if ended.flooded:
        raise ShellOutput(params.binary, config.max_total_bytes)
    if ended.code is None and not params.stream:
        raise ShellTimeout(params.binary, seconds)
    return result_of(running.stdout, running.stderr, ended.code, time.monotonic() - started, ctx)


async def _piece(descriptor: int) -> bytes:
    """What can be read now, or will be; nothing at the end."""
    while True:
        await anyio.wait_readable(descriptor)
        # A descriptor that is always readable must not keep all others waiting.
        await checkpoint()
        try:
            return os.read(descriptor, _PIECE)
        except BlockingIOError:
            continue
