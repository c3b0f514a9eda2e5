"""Reports about calls of implementations: each failure and, with tracing, each call."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from attrs import field, frozen

from ..errors import place_of
from ._errors import HookError
from ._event import Event
from ._results import Allow, Ask, Cancel, Deny

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
        package: the distribution and version of the plugin, such as ``sideband-http 1.2``; empty if unknown.
        action: with tracing, what a call that is ``DONE`` did: ``kept`` (nothing), ``changed``, ``added`` (items),
            ``answered`` (and ended the dispatch), ``allowed``, ``asked`` or ``denied``.
        reason: the reason of a denial, the text of a question or a note, the number of items, or the message of the
            failure.
        event: the event as the implementation got it, with all that it contains.
    """

    hook: str
    plugin: str
    outcome: HookOutcome
    ms: float = 0.0
    answer: str = ""
    error: HookError | None = None
    package: str = ""
    action: str = ""
    reason: str = ""
    event: Event | None = field(default=None, repr=False)

    @property
    def result(self) -> str:
        """The action of a call that is done, else its outcome, in one word or two."""
        return self.action or self.outcome.value


class Acted(NamedTuple):
    """What an implementation did in one call: the type of its answer, the action and its reason."""

    answer: str = ""
    action: str = ""
    reason: str = ""

    @classmethod
    def by(cls, answer: object, *, changed: bool, ended: bool) -> Acted:
        """Return what an answer did.

        Args:
            answer: the answer, which is valid.
            changed: whether it changed the event for the next implementation.
            ended: whether it ended the dispatch.
        """
        action, reason = "kept", ""
        match answer:
            case Deny() | Cancel():
                action, reason = "denied", answer.reason
            case Ask():
                action, reason = "asked", answer.question
            case Allow():
                action, reason = "allowed", answer.note
            case _ if changed:
                action = "changed"
            case list() | tuple():
                action, reason = "added", "1 item" if len(answer) == 1 else f"{len(answer)} items"
            case _ if ended:
                action = "answered"
        return cls("" if answer is None else type(answer).__name__, action, reason)


NOTHING = Acted()

Report = Callable[[HookReport], None]
"""A function that receives the failures of hook implementations."""


def log_report(report: HookReport) -> None:
    """Log failures as warnings. This is the default receiver of reports."""
    if report.error is not None:
        _log.warning("%s (%s: %s, %.1f ms)", described(report.error), report.plugin, report.outcome, report.ms)


def described(error: HookError) -> str:
    """Return the message of a failure with where it was raised and what to do about it."""
    place = place_of(error)
    return "; ".join([error.message, *([f"raised in {place}"] if place else []), error.hint])


def deliver(report: Report, one: HookReport) -> None:
    """Pass on a report. Exceptions of the receiver are logged, so that they cannot break the dispatch."""
    try:
        report(one)
    except Exception:  # noqa: BLE001  receivers may fail in any way
        _log.exception("the receiver of hook reports failed")
