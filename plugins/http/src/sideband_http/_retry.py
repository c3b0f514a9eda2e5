"""When a session repeats a request, and after how long."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import anyio
from attrs import frozen

from ._errors import ConnectFailed, HttpError
from ._models import Response
from ._transport import IDEMPOTENT

__all__ = ["Retry", "retry_after"]

_BUSY = frozenset({429, 502, 503, 504})
_LONGEST_DELAY = 120.0


@frozen
class Retry:
    """How a session repeats requests.

    Args:
        times: how often at most, after the first attempt.
        delay: seconds before the first repetition; doubled each time.
    """

    times: int = 0
    delay: float = 2.0

    async def run(self, method: str, attempt: Callable[[], Awaitable[Response]]) -> Response:
        """Make attempts until one is final, and return or raise what that one gave.

        A request that reached nobody is repeated whatever its method; others only if doing them twice is the same as
        once. A server that asks for more than two minutes is not waited for: its answer is returned.
        """
        for attempted in range(self.times):
            delay = min(self.delay * 2**attempted, _LONGEST_DELAY)
            try:
                answer = await attempt()
            except HttpError as error:
                if not (error.retryable and (method in IDEMPOTENT or isinstance(error, ConnectFailed))):
                    raise
            else:
                if method not in IDEMPOTENT or answer["status"] not in _BUSY:
                    return answer
                delay = max(delay, retry_after(answer["headers"].get("retry-after", ""), now=datetime.now(UTC)))
                if delay > _LONGEST_DELAY:
                    return answer
            await anyio.sleep(delay)
        return await attempt()


def retry_after(value: str, *, now: datetime) -> float:
    """The seconds that a ``Retry-After`` header asks for; 0 if it can't be understood."""
    if value.isdecimal():
        return float(value[:9])
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
