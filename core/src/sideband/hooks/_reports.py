"""What the dispatcher tells about implementations: each failure, and with tracing each call."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import StrEnum

from attrs import frozen

from ._errors import HookError

_log = logging.getLogger("sideband.hooks")


class HookOutcome(StrEnum):
    """What became of one implementation in one dispatch."""

    DONE = "done"
    FAILED = "failed"
    TIMEOUT = "timeout"
    NOT_REACHED = "not reached"


@frozen
class HookReport:
    """One call of one implementation.

    Attributes:
        hook: the hook.
        plugin: the entry-point name of the plugin.
        outcome: what became of it. ``NOT_REACHED`` says that the deadline passed in an implementation before it.
        ms: how long it ran, in milliseconds.
        answer: the type of its answer, ``Deny``; empty for ``None``.
        error: why it failed; for ``NOT_REACHED``, the timeout of the other one.
    """

    hook: str
    plugin: str
    outcome: HookOutcome
    ms: float = 0.0
    answer: str = ""
    error: HookError | None = None


Report = Callable[[HookReport], None]


def log_report(report: HookReport) -> None:
    """Where reports go if nobody asks for them: failures become warnings in the log."""
    if report.error is not None:
        _log.warning("%s (%s: %s, %.1f ms)", report.error, report.plugin, report.outcome, report.ms)


def deliver(report: Report, one: HookReport) -> None:
    """Hand over a report; whoever takes it can't break the dispatch."""
    try:
        report(one)
    except Exception:  # noqa: BLE001  the receiver is somebody's code too
        _log.exception("the receiver of hook reports failed")
