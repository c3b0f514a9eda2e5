"""When a request is repeated, and after how long."""

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
_LONGEST_DELAY = 120.0


def is_repeatable(method: str, params: UrlParams | SessionRequestParams) -> bool:
    """Whether doing it twice is the same as once, by its method or since the server recognises it."""
    return method in IDEMPOTENT or getattr(params, "idempotency_key", None) is not None


@frozen
class RequestRetry:
    """How requests are repeated.

    Args:
        times: how often at most, after the first attempt.
        delay: seconds before the first repetition; doubled each time, and up to a half more by chance, so that many
            who were turned away together do not come back together.
    """

    times: int = 0
    delay: float = 2.0

    async def run(self, attempt: Callable[[], Awaitable[Response]], *, repeatable: bool, until: float) -> Response:
        """Make attempts until one is final, and return or raise what that one gave.

        A request that reached nobody is repeated in any case. A server that asks for more than two minutes, or for
        more time than there is, is not waited for: its answer is returned.

        Args:
            attempt: makes one.
            repeatable: whether doing it twice is the same as once.
            until: when no attempt begins any more, as ``anyio.current_time()``.
        """
        reached = False
        for attempted in range(self.times):
            delay = min(self.delay * 2**attempted, _LONGEST_DELAY) * random.uniform(1, 1.5)  # noqa: S311  no secret
            try:
                with _after(reached), _judged(repeatable):
                    answer = await attempt()
            except HttpError as error:
                if not error.retryable or not _has_time(delay, until):
                    raise
                reached = reached or not error.nothing_happened
            else:
                reached = True
                if not repeatable or answer["status"] not in _BUSY:
                    return answer
                asked = retry_after(answer["headers"].get("retry-after", ""), now=datetime.now(UTC))
                delay = max(delay, asked)
                if asked > _LONGEST_DELAY or not _has_time(delay, until):
                    return answer
            await anyio.sleep(delay)
        with _after(reached), _judged(repeatable):
            return await attempt()


@contextmanager
def _judged(repeatable: bool) -> Iterator[None]:
    """Say of errors whether the whole request may be made again: the transport only knows one hop of it."""
    try:
        yield
    except HttpError as error:
        broke_off = isinstance(error, HttpTimeout | ProtocolFailed)
        error.retryable = (error.retryable or broke_off) if repeatable else error.retryable and error.nothing_happened
        raise


@contextmanager
def _after(reached: bool) -> Iterator[None]:
    """What fails here and says that nothing happened means its own attempt: an earlier one may have been acted on."""
    try:
        yield
    except OpError as error:
        error.nothing_happened = error.nothing_happened and not reached
        raise


def _has_time(delay: float, until: float) -> bool:
    return anyio.current_time() + delay < until


def retry_after(value: str, *, now: datetime) -> float:
    """The seconds that a ``Retry-After`` header asks for; 0 if it can't be understood."""
    if value.isdecimal():
        return float(value[:9])
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
