"""Pass every event of an agent to a function."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen
from sideband.hooks import HOOK_SPECS, Kind, ObserveEvent, hookimpl

Listener = Callable[[ObserveEvent], object]
"""Called with every observe event, including effects, after the plugins. Must not block."""


@frozen
class Listening:
    """Implementations of all observe hooks that pass each event to a listener. Its exceptions are reported."""

    listener: Listener


def _hear(name: str) -> Callable[..., None]:
    def hear(self: Listening, event: ObserveEvent) -> None:
        self.listener(event)

    hear.__name__ = name
    return hookimpl(hear)


for _name, _spec in HOOK_SPECS.items():
    if _spec.kind is Kind.OBSERVE:
        setattr(Listening, _name, _hear(_name))
