"""Values that are the same in all attempts to run a call: its start time and its random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._context import CurrentCall, current_call

if TYPE_CHECKING:
    import datetime as dt
    import random

# The modules are imported on first use, because most skills need none of these values.


def start_time() -> dt.datetime:
    """Return the time at which the first attempt of the current call began, in UTC."""
    from datetime import UTC, datetime  # noqa: PLC0415  see above

    call = _current()
    if call.started_at is None:
        recorded = call.environment.get("started")
        call.started_at = datetime.fromisoformat(recorded) if recorded else datetime.now(UTC)
    return call.started_at


def random_of_call() -> random.Random:
    """Return the current call's generator of random numbers, seeded by the host."""
    from random import Random  # noqa: PLC0415  see above

    call = _current()
    if call.random is None:
        # Without a seed, Python uses one of the operating system.
        call.random = Random(call.environment.get("seed"))  # noqa: S311  for replays, not for secrets
    return call.random


class CallRandom:
    """A proxy for the generator of whichever call uses it, because a worker runs several calls at once."""

    def __getattr__(self, name: str) -> Any:
        return getattr(random_of_call(), name)

    def __dir__(self) -> list[str]:
        return dir(random_of_call())

    def __repr__(self) -> str:
        return "<random numbers of the current call>"


def _current() -> CurrentCall:
    call = current_call.get()
    if call is None:
        raise RuntimeError("the values of a call can only be used inside a call; start this code from a tool")
    return call
