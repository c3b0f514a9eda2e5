"""Runs one program until it exits: its output goes to the caller while it runs, and into the result."""

from __future__ import annotations

import codecs

import anyio
from attrs import define, field
from sideband.ops import OpContext
from sideband.tools import emit_tool_progress

from ._config import Config
from ._errors import ShellOutput, ShellTimeout
from ._kept_output import KeptOutput
from ._launching import launch_program
from ._models import ShellRunParams, ShellRunResult
from ._program_request import seconds_of
from ._program_run import STREAMS, ProgramRun
from ._result import result_of

_SECONDS_BETWEEN_PROGRESS = 0.25


@define(eq=False)
class _Output:
    """The output of a running program.

    Args:
        ctx: receives output and progress.
        limit: the number of bytes of each stream to keep.
    """

    ctx: OpContext
    limit: int
    kept: dict[str, KeptOutput] = field(init=False)
    _decoders: dict[str, codecs.IncrementalDecoder] = field(init=False)
    _last_progress: float = field(init=False, default=0.0)

    def __attrs_post_init__(self) -> None:
        self.kept = {name: KeptOutput(self.limit) for name in STREAMS}
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in STREAMS}

    async def take(self, stream: str, data: bytes) -> None:
        """Keep output of a stream, and hand it on."""
        self.kept[stream].feed(data)
        text = self._decoders[stream].decode(data)
        emit_tool_progress(text, stream)
        await self._report(stream, text)

    def end(self, stream: str) -> None:
        """Hand on the rest of a stream that has ended."""
        emit_tool_progress(self._decoders[stream].decode(b"", final=True), stream)

    async def _report(self, stream: str, text: str) -> None:
        """Emit parts of the result, at most as much as it contains, and report progress from time to time."""
        kept = self.kept[stream]
        if text and kept.total <= kept.limit:
            await self.ctx.emit({"type": "output", "stream": stream, "text": text})
        now = anyio.current_time()
        if now - self._last_progress >= _SECONDS_BETWEEN_PROGRESS:
            self._last_progress = now
            # Do not truncate it here: the host redacts secrets first, and would not recognize a partial one.
            line = next((line for line in reversed(text.splitlines()) if line.strip()), "")
            total = sum(one.total for one in self.kept.values())
            await self.ctx.progress(current=total, message=line, unit="bytes")


async def run_program(params: ShellRunParams, ctx: OpContext) -> ShellRunResult:
    """Check the request, and run the program until it exits."""
    config: Config = ctx.config
    seconds = seconds_of(params, config)
    program = await launch_program(params, ctx)
    output = _Output(ctx, config.max_output_bytes)
    began = anyio.current_time()
    try:
        running = ProgramRun(program, config.max_total_bytes, output.take, output.end)
        ended = await running.finish(params.input_bytes, seconds)
    finally:
        await program.close()
    if ended.flooded:
        raise ShellOutput(params.binary, config.max_total_bytes)
    if ended.code is None and not params.stream:
        raise ShellTimeout(params.binary, seconds)
    return result_of(output.kept["stdout"], output.kept["stderr"], ended.code, anyio.current_time() - began, ctx)
