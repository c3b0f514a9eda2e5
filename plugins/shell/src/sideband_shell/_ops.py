"""The ops `shell.run`, `shell.start`, `shell.output` and `shell.stop`."""

from __future__ import annotations

from collections.abc import Iterable

import anyio
from sideband.ops import Level, OpContext, op

from ._background import BackgroundPrograms, Owner
from ._background_models import (
    ShellOutputParams,
    ShellOutputPart,
    ShellProgramOutput,
    ShellProgramState,
    ShellStarted,
    ShellStartParams,
    ShellStopParams,
)
from ._kept_output import readable
from ._launching import launch_program
from ._models import ProgramParams, ShellRunParams, ShellRunResult
from ._preview import preview_run
from ._program_request import seconds_of
from ._running import run_program
from ._scope import ShellScope
from ._undo import undo_run

# The maximum timeout of a program, and a margin to start and kill it.
_MAXIMUM_SECONDS = 86_400.0 + 60.0
_START_SECONDS = 60.0
# The maximum `wait` and `grace`, and a margin.
_OUTPUT_SECONDS = 3_660.0
_STOP_SECONDS = 90.0
_RECORDED = ("binary", "args", "cwd", "read", "write", "execute", "network", "timeout")


def _scope(params: ProgramParams) -> Iterable[ShellScope]:
    return params.scopes()


def _leaves_machine(params: ProgramParams) -> bool:
    return params.network


@op(
    "shell.run",
    requires="shell",
    scope=_scope,
    level=Level.RESTRICTED,
    timeout=_MAXIMUM_SECONDS,
    idempotent=False,
    record=_RECORDED,
    preview=preview_run,
    undo=undo_run,
    egress=_leaves_machine,
)
async def run(params: ShellRunParams, ctx: OpContext) -> ShellRunResult:
    """Run a program with arguments, in the isolation of skills. No shell interprets the arguments.

    The program can read the machine's programs and libraries, and the places that are both requested and granted. When
    it exits, its descendants are killed.

    Args:
        params: `binary` is an absolute path, or a name that is looked up in fixed folders; `args` are the arguments;
            `read`, `write` and `execute` are the places; `cwd` is the working directory; `input` is the standard
            input, empty by default; `env` adds variables; `network` requests access to the network; `timeout` is in
            seconds; with `stream`, an expired timeout returns the output so far instead of raising.
        ctx: the dispatch.

    Returns:
        The exit code and the output. A nonzero exit code is not an error.

    Raises:
        ShellTimeout: if the timeout expires.
        ShellOutput: if the output exceeds `max_total_bytes`.
        ShellIsolation: if the isolation that the host requires is not available for programs.
        ShellError: for the other errors of `sideband_shell`; the program has not run then.

    Example:
        ``{"binary": "git", "args": ["status", "--short"], "cwd": "/srv/repo"}``
    """
    return await run_program(params, ctx)


@op(
    "shell.start",
    requires="shell",
    scope=_scope,
    level=Level.RESTRICTED,
    timeout=_START_SECONDS,
    idempotent=False,
    record=_RECORDED,
    preview=preview_run,
    undo=undo_run,
    egress=_leaves_machine,
)
async def start(params: ShellStartParams, ctx: OpContext) -> ShellStarted:
    """Start a program in the background, with the parameters of `shell.run`.

    It ends with the session of the agent, or with the call if there is no agent, and with the host.

    Args:
        params: see `shell.run`.
        ctx: the dispatch.

    Returns:
        The id of the program, which other sessions and skills cannot use.

    Raises:
        ShellTooMany: if too many programs run in the background.
        ShellError: for the other errors of `sideband_shell`; the program has not run then.

    Example:
        ``{"binary": "make", "args": ["serve"], "cwd": "/srv/repo"}``
    """
    programs: BackgroundPrograms = ctx.state
    owner = Owner.of(ctx)
    programs.reserve(owner)
    try:
        process = await launch_program(params, ctx)
        # Without an await in between, so that a cancellation cannot lose the program.
        seconds = seconds_of(params, programs.config)
        return ShellStarted(program=programs.add(process, ctx, params.input_bytes, seconds))
    finally:
        programs.release(owner)


@op(
    "shell.output",
    requires="shell",
    level=Level.SAFE,
    timeout=_OUTPUT_SECONDS,
    record=("program", "offset", "wait", "until"),
    egress=False,
)
async def output(params: ShellOutputParams, ctx: OpContext) -> ShellProgramOutput:
    """Return the output of a program in the background from a byte on, and whether the program has ended.

    Both streams are one text, in the order in which their parts arrived. Only the newest `max_background_bytes` are
    kept: `omitted` is the size of what was requested and is gone. While it waits, new output is streamed to the caller.

    Args:
        params: `program` is the id; `offset` is the first byte; `wait` is how long to wait for output after it, or for
            the end of the program; `max_bytes` limits the result.
        ctx: the dispatch.

    Returns:
        The output, the offset of the next byte, and the state of the program.

    Raises:
        ShellProgramUnknown: if the session has no program with this id.

    Example:
        ``{"program": "9f0c…", "offset": 0, "wait": 10}``
    """
    programs: BackgroundPrograms = ctx.state
    program = programs.get(params.program, Owner.of(ctx))
    offset = params.offset if params.offset >= 0 else max(0, program.log.size + params.offset)
    with anyio.move_on_after(params.wait):
        await program.follow(offset, until_end=params.until == "end")
    found = program.log.read(offset, params.max_bytes)
    return ShellProgramOutput(
        parts=[ShellOutputPart(stream=one.stream, content=readable(one.data)) for one in found.parts],
        offset=found.offset,
        next=found.next,
        omitted=found.omitted,
        size=program.log.size,
        **program.state.model_dump(),
    )


@op(
    "shell.stop",
    requires="shell",
    level=Level.MONITORED,
    timeout=_STOP_SECONDS,
    idempotent=False,
    record=("program", "grace"),
    egress=False,
)
async def stop(params: ShellStopParams, ctx: OpContext) -> ShellProgramState:
    """End a program in the background: with SIGTERM first, then it is killed with all its descendants.

    Args:
        params: `program` is the id; `grace` is how long it may take to exit.
        ctx: the dispatch.

    Returns:
        How it ended. Its output can still be read. A program that had ended before is not changed.

    Raises:
        ShellProgramUnknown: if the session has no program with this id.

    Example:
        ``{"program": "9f0c…"}``
    """
    programs: BackgroundPrograms = ctx.state
    program = programs.get(params.program, Owner.of(ctx))
    await program.stop(params.grace)
    return program.state
