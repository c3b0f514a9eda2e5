"""Calls that no skill makes: a user's own, and those of plugins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from secrets import token_hex

import anyio

from ..broker import Call
from ..ops import Grant, Origin

_LONGEST = 3_600.0


@asynccontextmanager
async def own_call(
    grant: Grant,
    domain: str,
    origin: Origin,
    report: Callable[[Exception], object],
    deadline: float | None = None,
) -> AsyncIterator[Call]:
    """A call that ends with the block. What its ops left open is closed then.

    Args:
        grant: its rights.
        domain: who may share what the call leaves behind.
        origin: who causes it.
        report: told of what closing raises.
        deadline: seconds; ``None``: an hour.
    """
    end = anyio.current_time() + (deadline or _LONGEST)
    call = Call(id=token_hex(16), grant=grant, domain=domain, origin=origin, deadline=end)
    try:
        yield call
    finally:
        await call.end(report)
