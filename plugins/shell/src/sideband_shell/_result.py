"""Builds the result of a program."""

from __future__ import annotations

import signal as signals
from functools import partial

from sideband.ops import EgressRefused, OpContext

from ._kept_output import KeptOutput
from ._models import ShellRunResult


def result_of(
    stdout: KeptOutput, stderr: KeptOutput, code: int | None, seconds: float, ctx: OpContext
) -> ShellRunResult:
    """Return the exit code and the output, without partial secrets; ``code`` is ``None`` after a timeout."""
    is_cut = partial(_is_cut, ctx)
    out, err = stdout.finish(is_cut), stderr.finish(is_cut)
    signalled = code is not None and code < 0
    return ShellRunResult(
        exit_code=-1 if code is None or signalled else code,
        signal=signal_name(-code) if code is not None and signalled else None,
        stdout=out.content,
        stderr=err.content,
        timed_out=code is None,
        truncated=bool(out.omitted or err.omitted),
        stdout_omitted=out.omitted,
        stderr_omitted=err.omitted,
        seconds=round(seconds, 3),
    )


def _is_cut(ctx: OpContext, before: bytes, after: bytes) -> bool:
    try:
        ctx.check_cut(before, after)
    except EgressRefused:
        return True
    return False


def signal_name(number: int) -> str:
    """Return the name of a signal."""
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"SIG{number}"
