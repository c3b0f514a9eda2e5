"""Reports about calls of implementations: each failure and, with tracing, each call."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import StrEnum

from attrs import frozen

from ._errors import HookError

_log = logging.getLogger("sideband.hooks")


class HookOutcome(StrEnum):
    """The outcome of one implementation in one dispatch."""

    DONE = "done"
    FAILED = "failed"
    TIMEOUT = "timeout"
    NOT_REACHED = "not reached"


@frozen
class HookReport:
    """One call of one implementation.

    Attributes:
        hook: the name of the hook.
        plugin: the entry-point name of the plugin.
        outcome: the outcome. ``NOT_REACHED`` means that the deadline passed in an earlier implementation.
        ms: the duration in milliseconds.
        answer: the type of its answer, such as ``Deny``; empty for ``None``.
        error: the failure; for ``NOT_REACHED``, the timeout of the earlier implementation.
    """

    hook: str
    plugin: str
    outcome: HookOutcome
    ms: float = 0.0
    answer: str = ""
    error: HookError | None = None


Report = Callable[[HookReport], None]


def log_report(report: HookReport) -> None:
    """Log failures as warnings. This is the default receiver of reports."""
    if report.error is not None:
        _log.warning("%s (%s: %s, %.1f ms)", report.error, report.plugin, report.outcome, report.ms)


def deliver(report: Report, one: HookReport) -> None:
    """Pass on a report. Exceptions of the receiver are logged, so that they cannot break the dispatch."""
    try:
        report(one)
    except Exception:  # noqa: BLE001  receivers may fail in any way
        _log.exception("the receiver of hook reports failed")
