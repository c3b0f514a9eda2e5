"""The guard: makes a reservation for each effect before it begins."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from urllib.parse import quote

from anyio import CancelScope
from attrs import frozen
from sideband.errors import ReservationRefused
from sideband.hooks import Deny, OpCall, hookimpl
from sideband.ops import Level, Origin
from sideband.plugins import PluginContext
from sideband.store import Reservations

from ._config import Config

_MINUTES_FROM = 120
_DIRECT = Origin()
"""The origin of what the user, or the program that opened the host, does directly."""


@frozen
class LimitGuard:
    """A guard that denies an effect if the limit of its level is reached. It keeps nothing in memory.

    Args:
        clock: returns the time in seconds since 1970.
    """

    _clock: Callable[[], float] = time.time

    @hookimpl(level=Level.CONTROLLED)
    async def op_call(self, event: OpCall, ctx: PluginContext) -> Deny | None:
        """Make a reservation. The host gives it back if the effect does not begin."""
        config: Config = ctx.config
        level = event.level.name
        limit = config.limit_of(event.level)
        # If another guard replaces the parameters, this one is asked again, and the level may be another.
        held = f"{ctx.plugin} {level}"
        if event.indirect or event.origin == _DIRECT or limit is None or held in event.reserved:
            return None
        whose, name = _counted(event.origin, config.per)
        limits = Reservations(ctx.store, self._clock)
        try:
            with CancelScope(shield=True):  # what was taken must be known, to be given back
                event.reserved[held] = await limits.take(
                    f"{level}/{name}", of=limit.count, seconds=limit.seconds, durable=False
                )
        except ReservationRefused as refused:
            effects = "1 effect" if limit.count == 1 else f"{limit.count:,} effects"
            return Deny(
                f"the limit of {effects} of the level {level} per {limit.window} is reached for {whose}",
                hint=f"try again in {_duration(refused.free_in)}; the user can raise `{level.lower()}` in "
                f"[plugins.{ctx.plugin}]",
            )
        return None


def _counted(origin: Origin, per: str) -> tuple[str, str]:
    """Return what shares a limit with an effect, in words and as a part of the name of the limit."""
    if per == "store":
        return "all effects together", "store"
    of_principal = f"principal/{quote(origin.principal, safe='')}"
    if per == "principal":
        return f"the principal `{origin.principal}`", of_principal
    for kind, name in (("skill", origin.skill), ("plugin", origin.plugin)):
        if name is not None:
            return f"the {kind} `{name}`", f"{of_principal}/{kind}/{name}"
    return "effects that no skill or plugin causes", f"{of_principal}/host"


def _duration(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds < _MINUTES_FROM else f"{math.ceil(seconds / 60):,} min"
