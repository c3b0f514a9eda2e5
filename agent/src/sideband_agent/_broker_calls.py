"""The one place where an agent makes calls of the broker: its model calls, and its tool calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from secrets import token_hex
from typing import Any

import anyio
from sideband.broker import Call
from sideband.hooks import HookRegistry
from sideband.ops import Grant, Origin

LONGEST_CALL = 86_400.0
"""Seconds for a call of an agent whose end something else decides."""

_NO_RIGHTS = Grant.of(())
_MOST_VALUES = 100_000


def new_call(
    origin: Origin,
    hooks: HookRegistry,
    *,
    grant: Grant = _NO_RIGHTS,
    seconds: float = LONGEST_CALL,
    on_part: Callable[[Mapping[str, Any]], Awaitable[None]] | None = None,
    most_values: int = _MOST_VALUES,
) -> Call:
    """A call with which an agent asks the broker for one effect.

    Args:
        origin: whose effect it is: the agent's session, run and step.
        hooks: the agent's guards and hooks.
        grant: its rights.
        seconds: how long it may take.
        on_part: gets parts of the result before it is complete.
        most_values: how many values its parameters may have.
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
    )
