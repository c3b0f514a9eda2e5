"""Retries of requests."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import anyio
from attrs import frozen
from sideband.ops import OpError

from .._errors import HttpError, HttpTimeout, ProtocolFailed
from .._models import Response, SessionRequestParams, UrlParams
from .._request._plan import IDEMPOTENT

_BUSY = frozenset({429, 502, 503, 504})
_MAX_DELAY = 120.0


def is_repeatable(method: str, params: UrlParams | SessionRequestParams) -> bool:
    """Return whether a request is idempotent, by its method or by its idempotency key."""
    return method in IDEMPOTENT or getattr(params, "idempotency_key", None) is not None


@frozen
class RequestRetry:
    """A retry policy.

    Args:
        times: the maximum number of retries after the first attempt.
        delay: the delay before the first retry, in seconds. It doubles each time, with up to 50 % random jitter, so
            that clients rejected together do not retry together.
    """

    times: int = 0
    delay: float = 2.0

    async def run(self, attempt: Callable[[], Awaitable[Response]], *, repeatable: bool, until: float) -> Response:
        """Make attempts until one is final, and return its response or raise its error.

        A request that did not reach a server is always retried. If a server requests a delay of more than two minutes,
        or more than the remaining time, its response is returned.

        Args:
            attempt: the function that makes an attempt.
            repeatable: whether the request is idempotent.
            until: the time after which no attempt begins, on the clock of ``anyio.current_time()``.
        """
        reached = False
        for attempted in range(self.times):
            delay = min(self.delay * 2**attempted, _MAX_DELAY) * random.uniform(1, 1.5)  # noqa: S311  not cryptographic
            try:
                with _errors_after(reached), _set_retryable(repeatable):
                    response = await attempt()
            except HttpError as error:
                if not error.retryable or not _has_time(delay, until):
                    raise
                reached = reached or not error.nothing_happened
            else:
                reached = True
                if not repeatable or response["status"] not in _BUSY:
                    return response
                requested = retry_after(response["headers"].get("retry-after", ""), now=datetime.now(UTC))
                delay = max(delay, requested)
                if requested > _MAX_DELAY or not _has_time(delay, until):
                    return response
            await anyio.sleep(delay)
        with _errors_after(reached), _set_retryable(repeatable):
            return await attempt()


@contextmanager
def _set_retryable(repeatable: bool) -> Iterator[None]:
    """Set ``retryable`` of errors for the whole request. The transport sets it for one hop only."""
    try:
        yield
    except HttpError as error:
        interrupted = isinstance(error, HttpTimeout | ProtocolFailed)
        error.retryable = (error.retryable or interrupted) if repeatable else error.retryable and error.nothing_happened
        raise


@contextmanager
def _errors_after(reached: bool) -> Iterator[None]:
    """Set ``nothing_happened`` of errors for all attempts. Errors set it for their own attempt only."""
    try:
        yield
    except OpError as error:
        error.nothing_happened = error.nothing_happened and not reached
        raise


def _has_time(delay: float, until: float) -> bool:
    return anyio.current_time() + delay < until


def retry_after(value: str, *, now: datetime) -> float:
    """Return the delay in a ``Retry-After`` header in seconds, or 0 if the value is invalid."""
    if value.isdecimal():
        return float(value[:9])
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
