"""Calls of users and plugins, without a skill."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from secrets import token_hex

import anyio

from ..broker import Call
from ..contexts._editions import Editions
from ..ops import Grant, Origin

_DEFAULT_DEADLINE = 3_600.0


@asynccontextmanager
async def own_call(
    grant: Grant,
    domain: str,
    origin: Origin,
    report: Callable[[Exception], object],
    *,
    editions: Editions,
    deadline: float | None = None,
) -> AsyncIterator[Call]:
    """Open a call that ends with the block; resources that its ops left open are then closed.

    Args:
        grant: the rights of the call.
        domain: the trust domain that may share resources the call creates.
        origin: the caller.
        report: called with each exception that closing raises.
        editions: the editions of the host's plugins. All ops of the call are of the current one.
        deadline: the deadline in seconds from now, or ``None`` for an hour.
    """
    end = anyio.current_time() + (deadline or _DEFAULT_DEADLINE)
    edition = editions.current
    call = Call(id=token_hex(16), grant=grant, domain=domain, origin=origin, deadline=end, edition=edition)
    edition.users += 1
    try:
        yield call
    finally:
        await call.end(report)
        edition.leave()
