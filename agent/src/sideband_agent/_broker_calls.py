"""Build the calls with which an agent uses the broker: model calls and tool calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from secrets import token_hex
from typing import Any

import anyio
from sideband.broker import Call
from sideband.contexts import Lease
from sideband.hooks import HookRegistry
from sideband.ops import Grant, Origin

LONGEST_CALL = 86_400.0
"""The deadline in seconds of a call that has its own, shorter timeout."""

_NO_RIGHTS = Grant.of(())
_MAX_VALUES = 100_000


def new_call(
    origin: Origin,
    hooks: HookRegistry,
    *,
    grant: Grant = _NO_RIGHTS,
    seconds: float = LONGEST_CALL,
    on_part: Callable[[Mapping[str, Any]], Awaitable[None]] | None = None,
    most_values: int = _MAX_VALUES,
    outer: Lease | None = None,
) -> Call:
    """Build a call with which an agent requests one effect from the broker.

    Args:
        origin: the agent's session, run and step.
        hooks: the agent's guards and hooks.
        grant: the call's capabilities.
        seconds: the deadline of the call.
        on_part: called with parts of the result before it is complete.
        most_values: the maximum number of values in its parameters.
        outer: the run in progress, after whose abort what still runs must cause no further effects.
    """
    return Call(
        id=token_hex(16),
        grant=grant,
        domain=f"agent:{origin.session}",
        origin=origin,
        deadline=anyio.current_time() + seconds,
        hooks=hooks,
        on_part=on_part,
        most_values=most_values,
        outer=outer,
    )
