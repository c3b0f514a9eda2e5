"""What a faulty plugin does when it is called."""

from __future__ import annotations

import anyio
from attrs import define, field


@define
class Fault:
    """Something that misbehaves from its n-th call on, and does nothing before.

    Attributes:
        at: the number of the first call at which it misbehaves.
        calls: the number of calls so far.
        reached: set when it misbehaves for the first time. A test waits for it instead of sleeping.
    """

    at: int = field(default=1, kw_only=True)
    calls: int = field(default=0, init=False)
    reached: anyio.Event = field(factory=anyio.Event, init=False, repr=False)

    async def __call__(self) -> None:
        """Misbehave, unless it is too early."""
        self.calls += 1
        if self.calls >= self.at:
            self.reached.set()
            await self.misbehave()

    async def misbehave(self) -> None:
        """Do what this fault is about."""


@define
class WaitForever(Fault):
    """Waits forever, until it is cancelled."""

    async def misbehave(self) -> None:
        """Wait."""
        await anyio.sleep_forever()


@define
class Slow(Fault):
    """Waits for some time.

    Args:
        seconds: how long.
    """

    seconds: float

    async def misbehave(self) -> None:
        """Wait."""
        await anyio.sleep(self.seconds)


@define
class Crash(Fault):
    """Raises an exception.

    Args:
        error: what it raises, such as ``OSError(errno.ENOSPC, "no space left")`` or ``SystemExit(7)``.
    """

    error: BaseException = field(factory=lambda: RuntimeError("injected by the test"))

    async def misbehave(self) -> None:
        """Raise."""
        raise self.error


@define
class SelfCancel(Fault):
    """Raises the exception of a cancellation, although it was not cancelled."""

    async def misbehave(self) -> None:
        """Raise."""
        raise anyio.get_cancelled_exc_class()("injected by the test")
