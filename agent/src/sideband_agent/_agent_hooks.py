"""Lets whoever runs an agent hear what its plugins hear."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from sideband.hooks import HOOK_SPECS, Kind, ObserveEvent, hookimpl

__all__ = ["Listener", "listening"]

Listener = Callable[[ObserveEvent], object]
"""Gets every event that is only told, effects included, right after the plugins. It must not block."""


def listening(listener: Listener) -> SimpleNamespace:
    """Hook implementations that hand every event on. What the listener raises is reported, and changes nothing."""

    def implementation(name: str) -> Any:
        def hear(event: ObserveEvent) -> None:
            listener(event)

        hear.__name__ = name
        return hookimpl(hear)

    names = [name for name, spec in HOOK_SPECS.items() if spec.kind is Kind.OBSERVE]
    return SimpleNamespace(**{name: implementation(name) for name in names})
