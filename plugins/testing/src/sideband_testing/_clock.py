"""The fixture `clock`: a clock that moves only when a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

from ._errors import ArgumentInvalid, KitError

if TYPE_CHECKING:
    from time_machine import Traveller

_FIXTURE = "clock"
_START = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


class FrozenClock:
    """A clock of this process that moves only when a test moves it: the fixture ``clock``.

    It sets the time of day, which ``datetime.now``, ``time.time`` and the host's records use. Timeouts and
    ``time.monotonic`` go on as usual. It begins at 2030-01-02 03:04:05 UTC.

    Example:
        >>> def test_entry_is_old_after_an_hour(clock):
        ...     written = clock.now
        ...     clock.move(hours=1)
        ...     assert datetime.now(UTC) - written == timedelta(hours=1)
    """

    def __init__(self) -> None:
        try:
            from time_machine import travel  # noqa: PLC0415  an optional dependency
        except ModuleNotFoundError:
            raise KitError(
                f"the fixture `{_FIXTURE}` needs the package `time-machine`",
                hint='pip install "sideband-testing[clock]"',
            ) from None
        self._travel = travel(_START, tick=False)
        self._traveller: Traveller | None = None

    def __enter__(self) -> Self:
        self._traveller = self._travel.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._travel.stop()

    @property
    def now(self) -> datetime:
        """The time, in UTC."""
        return datetime.now(UTC)

    def move(self, seconds: float = 0.0, *, minutes: float = 0.0, hours: float = 0.0, days: float = 0.0) -> None:
        """Move the clock forward by a duration; back if it is negative."""
        self._started().shift(timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days))

    def set(self, time: datetime) -> None:
        """Set the clock.

        Args:
            time: the time, with a time zone.

        Raises:
            ArgumentInvalid: if it is not a time with a time zone.
        """
        if not isinstance(time, datetime) or time.tzinfo is None:
            raise ArgumentInvalid(
                _FIXTURE, "time", f"{time!r} is not a time with a time zone", hint="pass `datetime(…, tzinfo=UTC)`"
            )
        self._started().move_to(time)

    def _started(self) -> Traveller:
        assert self._traveller is not None, "enter the clock first"  # noqa: S101  the fixture enters it
        return self._traveller
