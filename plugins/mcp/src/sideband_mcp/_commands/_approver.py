"""Ask the user at the terminal whether to accept what a server offers."""

from __future__ import annotations

import os
import pwd
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
from sideband.command_line import marked
from sideband.rendering import render

from .._catalog import MAX_LINES

if TYPE_CHECKING:
    from sideband.approvals import Approval, ApprovalRequest, Approver

_MAX_LINES = MAX_LINES


def terminal_approver() -> Approver | None:
    """Return a function that asks at the terminal; ``None`` without one."""
    return _ask if sys.stdin.isatty() and sys.stderr.isatty() else None


async def _ask(request: ApprovalRequest) -> Approval:
    from sideband.approvals import Approval  # noqa: PLC0415  only needed if a question is asked

    by = f"{_user()} (terminal)"
    offers_always = "always" in request.grants
    keys = "y/a/N" if offers_always else "y/N"
    legend = ["y = once, a = always, n = no"] if offers_always else []
    lines = marked([*map(render, _lines(request)), *legend, f"Accept this? [{keys}] "], sys.stderr)
    with suppress(termios.error):  # text typed before the question appeared must not answer it
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    sys.stderr.write("\n".join(lines))
    sys.stderr.flush()
    await anyio.wait_readable(sys.stdin)  # a thread could not be cancelled
    answer = sys.stdin.readline().strip().lower()
    if answer in ("a", "always") and offers_always:
        return Approval("allow", "always", by=by)
    return Approval("allow" if answer in ("y", "yes") else "deny", by=by)


def _lines(request: ApprovalRequest) -> Iterator[str]:
    yield request.question
    for one in request.effect.get("capabilities", ()):
        yield f"  {one}"
    changes = request.effect.get("arguments", {}).get("changes", ())
    yield from (f"  │ {one}" for one in changes[:_MAX_LINES])
    if len(changes) > _MAX_LINES:
        yield f"  (… {len(changes) - _MAX_LINES:,} lines omitted …)"


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
