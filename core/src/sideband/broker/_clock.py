"""The clock of the running event loop."""

from __future__ import annotations

from collections.abc import Callable

import anyio


def running_clock() -> Callable[[], float]:
    """Return the clock of ``anyio.current_time()``, which looks up the event loop at each call."""
    import asyncio  # noqa: PLC0415  slow to import, and not used on trio

    if anyio.get_cancelled_exc_class() is asyncio.CancelledError:
        return asyncio.get_running_loop().time
    return anyio.current_time
