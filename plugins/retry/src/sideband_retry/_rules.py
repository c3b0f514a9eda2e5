"""Decide how to react to a failed model call."""

from __future__ import annotations

import time
from collections.abc import Callable

from sideband.hooks import Compact, GiveUp, ModelError, Park, Retry

from ._classes import CLASSES, ErrorKind, Follows
from ._classify import classify
from ._config import Config
from ._failed_call import FailedCall
from ._hints import hint_of, parked_hint
from ._phrases import CERTIFICATE, REFUSED
from ._resets import named_wait
from ._schedule import Schedule

Answer = Retry | Compact | Park | GiveUp

_OURS = ("provider.", "llm.", "plugin.", "config.", "op.failed", "op.timeout")
_QUICK_ATTEMPTS, _QUICK_FACTOR = 2, 0.25


class RetryRules:
    """The rules that answer ``model_error``. Stateless: the event contains everything that the decision depends on.

    Args:
        config: the settings.
        schedule: the waits; derived from ``config`` by default.
        now: returns the current time in seconds since 1970.

    Example:
        >>> rules = RetryRules(Config(base=0))
        >>> rules.answer(ModelError("r1", "openai:m", {"code": "provider.refused", "status": 503}))
        Retry(delay=0.0, kind='overloaded', plugin='')
        >>> rules.answer(ModelError("r1", "openai:m", {"code": "provider.refused", "status": 401})).kind
        'auth'
    """

    def __init__(
        self, config: Config, *, schedule: Schedule | None = None, now: Callable[[], float] = time.time
    ) -> None:
        self._config = config
        self._schedule = schedule or Schedule(base=config.base, cap=config.cap)
        self._now = now

    def answer(self, event: ModelError) -> Answer | None:
        """Return the reaction, or ``None`` if the provider did not fail: a denial by a guard, for instance."""
        failure = FailedCall.read(event.error)
        if failure.code and not failure.code.startswith(_OURS):
            return None
        kind, wait = self._class_and_wait(failure)
        follows = CLASSES[kind].follows
        if follows is Follows.COMPACT:
            return _give_up(kind, failure, event) if event.compacted else Compact(kind.value)
        if not _may_repeat(kind, follows, failure):
            limited = wait is not None and follows is Follows.RETRY
            return self._park(kind, wait, event) if limited else _give_up(kind, failure, event)
        if wait is not None and wait > self._config.longest_wait:
            return self._park(kind, wait, event)
        return self._again(kind, follows, failure, wait, event)

    def _class_and_wait(self, failure: FailedCall) -> tuple[ErrorKind, float | None]:
        """Return the class and the named wait. A billing failure that names a time is a rate limit."""
        kind = classify(failure).kind
        limited = kind is ErrorKind.RATE_LIMIT
        wait = named_wait(failure.headers, failure.text, self._now(), limited=limited)
        if kind is ErrorKind.BILLING and wait is not None:
            return ErrorKind.RATE_LIMIT, wait
        return kind, wait

    def _again(
        self, kind: ErrorKind, follows: Follows, failure: FailedCall, wait: float | None, event: ModelError
    ) -> Answer:
        quick = _no_server_listens(kind, failure)
        most = _QUICK_ATTEMPTS if quick else 1 if follows is Follows.ONCE else self._config.attempts
        if event.attempt > min(most, self._config.attempts):
            return _give_up(kind, failure, event)
        delay = self._schedule.delay(event.attempt, floor=wait or 0.0, factor=_QUICK_FACTOR if quick else 1.0)
        if event.elapsed + delay <= self._config.deadline:
            return Retry(delay, kind.value)
        return _give_up(kind, failure, event) if wait is None else self._park(kind, wait, event)

    def _park(self, kind: ErrorKind, wait: float | None, event: ModelError) -> Park:
        until = self._now() + (wait or 0.0)
        return Park(until, kind.value, parked_hint(until, event.model))


def _may_repeat(kind: ErrorKind, follows: Follows, failure: FailedCall) -> bool:
    """Return whether the request may be repeated. The server's own ``x-should-retry`` takes precedence."""
    should_retry = failure.headers.get("x-should-retry", "").strip().lower()
    if should_retry in {"true", "false"}:
        return should_retry == "true"
    if kind is ErrorKind.UNREACHABLE and failure.has(CERTIFICATE):
        return False
    return follows is not Follows.GIVE_UP


def _no_server_listens(kind: ErrorKind, failure: FailedCall) -> bool:
    return kind is ErrorKind.UNREACHABLE and failure.has(REFUSED)


def _give_up(kind: ErrorKind, failure: FailedCall, event: ModelError) -> GiveUp:
    return GiveUp(kind.value, hint_of(kind, failure, event.model))
