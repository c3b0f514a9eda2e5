"""The op `shell.run`."""

from __future__ import annotations

import os
import shlex
import signal as signals
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from sideband.ops import EgressRefused, Level, OpContext, Recorded, Undo, op
from sideband.workers import CommandLimits, CommandRequest, IsolationUnavailable, Place, WorkerStartFailed

from ._config import Config
from ._environment import environment_of, refuse_variables
from ._errors import ShellArguments, ShellIsolation, ShellOutput, ShellStart, ShellTimeout
from ._models import RunParams, RunResult
from ._output import Kept
from ._places import PRIVATE, Grounds, find_places
from ._programs import Program, find_program, safe_folders
from ._running import Run
from ._scope import ShellScope

__all__ = ["run"]

# The longest time of a command, and what it takes to start and end it.
_MOST_SECONDS = 86_400.0 + 60.0
# The kernel takes 128 KiB as one argument, and a quarter of the stack for all of them and the environment.
_LONGEST_ARGUMENT = 128 * 1024 - 1
_LONGEST_VECTOR = 1024 * 1024
_BYTES_OF_A_POINTER = 8


def _scope(params: RunParams) -> Iterable[ShellScope]:
    return params.scopes()


async def _preview(params: RunParams, ctx: OpContext) -> str:
    program, grounds = await anyio.to_thread.run_sync(_find, params, ctx.config, ctx.home)
    words = [f"run `{shlex.join([str(program.path), *params.args])}`"]
    words.append("in a folder of its own" if grounds.folder == PRIVATE else f"in `{grounds.folder}`")
    for mode, verb in (("read", "may read"), ("write", "may change")):
        paths = [f"`{path}`" for path, its in grounds.paths.items() if its == mode]
        if paths:
            words.append(f"it {verb} {', '.join(paths)}")
    words.append("with the network" if params.network else "without network")
    if params.env:
        words.append(f"sets {', '.join(sorted(params.env))}")
    if params.input is not None:
        words.append(f"gets {len(_input(params) or b''):,} bytes of input")
    words.append(f"ends after {_seconds(params, ctx.config):g} s at the latest")
    return "; ".join(words)


async def _undo(recorded: Recorded, ctx: OpContext) -> Undo:  # noqa: ARG001  nothing of it helps
    binary = recorded.params.get("binary", "the command")
    return Undo(remains=(f"what `{binary}` did can't be taken back: nobody but the program knows what it has changed",))


@op(
    "shell.run",
    requires="shell",
    scope=_scope,
    level=Level.RESTRICTED,
    timeout=_MOST_SECONDS,
    idempotent=False,
    record=("binary", "args", "cwd", "read", "write", "network", "timeout"),
    preview=_preview,
    undo=_undo,
)
async def run(params: RunParams, ctx: OpContext) -> RunResult:
    """Run a program with arguments, in the isolation of skills. There is no shell: nothing in an argument is special.

    It reads the machine's programs and libraries, and the places that the request names and the grant allows. When it
    ends, everything that it has started ends.

    Args:
        params: `binary` is looked up in fixed folders, or is an absolute path; `args` are its arguments, one item
            each; `read` and `write` are its places; `cwd` is where it works; `input` is its standard input, which is
            at its end at once without it; `env` adds variables; `network` asks for the network; `timeout` is in
            seconds; with `stream` a command that is not done in time is answered with what it had printed.
        ctx: the dispatch.

    Returns:
        How it ended and what it printed. An exit code other than 0 is an answer, not an error.

    Raises:
        ShellTimeout: it did not end in time.
        ShellOutput: it printed without end.
        ShellIsolation: commands can't be isolated here as the host demands.
        ShellError: what else is listed in `sideband_shell`'s errors; nothing has run then.

    Example:
        ``{"binary": "git", "args": ["status", "--short"], "cwd": "/srv/repo"}``
    """
    config: Config = ctx.config
    refuse_variables(params.env)
    program, grounds = await anyio.to_thread.run_sync(_find, params, config, ctx.home)
    data = _input(params)
    _check_egress(params, data, ctx)
    _check_size(program, params)
    seconds = _seconds(params, config)
    started = time.monotonic()
    try:
        command = await ctx.launch(_request(params, program, grounds, config))
    except IsolationUnavailable as error:
        raise ShellIsolation(error.message, error.hint) from error
    except WorkerStartFailed as error:
        raise ShellStart(error.message, error.hint) from error
    running = Run(command, ctx, config.max_output_bytes, config.max_total_bytes)
    try:
        ended = await running.to_the_end(data, seconds)
    finally:
        await command.close()
    if ended.flooded:
        raise ShellOutput(params.binary, config.max_total_bytes)
    if ended.code is None and not params.stream:
        raise ShellTimeout(params.binary, seconds)
    return _result(running.stdout, running.stderr, ended.code, time.monotonic() - started, partial(_is_cut, ctx))


def _find(params: RunParams, config: Config, home: Path) -> tuple[Program, Grounds]:
    program = find_program(params.binary, config.path, home)
    return program, find_places(params.places, params.cwd, home, most=config.max_places)


def _check_egress(params: RunParams, data: bytes | None, ctx: OpContext) -> None:
    parts: dict[str, str | bytes] = {f"argument {number}": text for number, text in enumerate(params.args, 1)}
    parts |= {f"variable `{name}`": value for name, value in params.env.items()}
    parts |= {f"name of a variable {number}": name for number, name in enumerate(params.env, 1)}
    parts |= {"binary": params.binary, "working directory": params.cwd or ""}
    parts |= {f"place {number}": place for number, place in enumerate(params.places, 1)}
    if data:
        parts["input"] = data
    # All of them as one, too: a secret may be cut in two.
    parts["arguments"] = "".join(params.args)
    ctx.check_egress(None, parts)


def _check_size(program: Program, params: RunParams) -> None:
    words = [str(program.path), *params.args, *(f"{name}={value}" for name, value in params.env.items())]
    sizes = [len(os.fsencode(word)) + 1 for word in words]
    if max(sizes) > _LONGEST_ARGUMENT:
        raise ShellArguments("an argument", max(sizes), _LONGEST_ARGUMENT)
    whole = sum(sizes) + _BYTES_OF_A_POINTER * len(sizes)
    if whole > _LONGEST_VECTOR:
        raise ShellArguments("a vector", whole, _LONGEST_VECTOR)


def _input(params: RunParams) -> bytes | None:
    return params.input.encode() if isinstance(params.input, str) else params.input


def _seconds(params: RunParams, config: Config) -> float:
    return min(params.timeout, config.max_seconds)


def _request(params: RunParams, program: Program, grounds: Grounds, config: Config) -> CommandRequest:
    return CommandRequest(
        arguments=(str(program.path), *params.args),
        folder=grounds.folder,
        environment=environment_of(":".join(safe_folders(config.path)), config.environment, params.env),
        places=tuple(Place(path, writable=mode == "write") for path, mode in grounds.paths.items()),
        network=params.network,
        limits=CommandLimits(
            memory=config.memory_bytes,
            processes=config.max_processes,
            files=config.max_open_files,
            file_size=config.max_file_bytes,
            # Whatever it computes on all cores until its time is over.
            cpu_seconds=int(_seconds(params, config) * (os.cpu_count() or 1)) + 1,
        ),
    )


def _is_cut(ctx: OpContext, before: bytes, after: bytes) -> bool:
    try:
        ctx.check_cut(before, after)
    except EgressRefused:
        return True
    return False


def _result(
    stdout: Kept, stderr: Kept, code: int | None, duration: float, is_cut: Callable[[bytes, bytes], bool]
) -> RunResult:
    out, err = stdout.finish(is_cut), stderr.finish(is_cut)
    signalled = code is not None and code < 0
    return RunResult(
        exit_code=-1 if code is None or signalled else code,
        signal=_signal_name(-code) if code is not None and signalled else None,
        stdout=out.content,
        stderr=err.content,
        timed_out=code is None,
        truncated=bool(out.omitted or err.omitted),
        stdout_omitted=out.omitted,
        stderr_omitted=err.omitted,
        duration=round(duration, 3),
    )


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"SIG{number}"
