"""The op `shell.run`."""

from __future__ import annotations

from collections.abc import Iterable

from sideband.ops import Level, OpContext, op

from ._models import ShellRunParams, ShellRunResult
from ._preview import preview_run
from ._running import run_program
from ._scope import ShellScope
from ._undo import undo_run

# The maximum timeout of a program, and a margin to start and kill it.
_MAXIMUM_SECONDS = 86_400.0 + 60.0


def _scope(params: ShellRunParams) -> Iterable[ShellScope]:
    return params.scopes()


def _leaves_machine(params: ShellRunParams) -> bool:
    return params.network


@op(
    "shell.run",
    requires="shell",
    scope=_scope,
    level=Level.RESTRICTED,
    timeout=_MAXIMUM_SECONDS,
    idempotent=False,
    record=("binary", "args", "cwd", "read", "write", "network", "timeout"),
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
            `read` and `write` are the places; `cwd` is the working directory; `input` is the standard input, empty by
            default; `env` adds variables; `network` requests access to the network; `timeout` is in seconds; with
            `stream`, an expired timeout returns the output so far instead of raising.
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
