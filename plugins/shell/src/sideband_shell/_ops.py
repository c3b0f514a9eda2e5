"""The op `shell.run`."""

from __future__ import annotations

from collections.abc import Iterable

from sideband.ops import Level, OpContext, op

from ._models import ShellRunParams, ShellRunResult
from ._preview import preview_run
from ._running import run_program
from ._scope import ShellScope
from ._undo import undo_run

# The longest time of a command, and what it takes to start and end it.
_MOST_SECONDS = 86_400.0 + 60.0


def _scope(params: ShellRunParams) -> Iterable[ShellScope]:
    return params.scopes()


@op(
    "shell.run",
    requires="shell",
    scope=_scope,
    level=Level.RESTRICTED,
    timeout=_MOST_SECONDS,
    idempotent=False,
    record=("binary", "args", "cwd", "read", "write", "network", "timeout"),
    preview=preview_run,
    undo=undo_run,
)
async def run(params: ShellRunParams, ctx: OpContext) -> ShellRunResult:
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
    return await run_program(params, ctx)
