"""The events of an agent as JSON Lines, the output of ``sideband run --json``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from sideband.command_line import json_text

if TYPE_CHECKING:
    from sideband.hooks import ObserveEvent


def event_data(event: ObserveEvent) -> dict[str, Any]:
    """Return an event as data: ``event`` is the name of its hook, the other keys are its attributes.

    Example:
        >>> from sideband.hooks import TurnStart
        >>> event_data(TurnStart("r1", 0))
        {'event': 'turn_start', 'run': 'r1', 'index': 0}
    """
    return {"event": event.hook, **_attributes(event)}


def print_event(event: ObserveEvent) -> None:
    """Print one event and flush standard output."""
    print_line(event_data(event))


def print_line(data: Mapping[str, Any]) -> None:
    """Print data as one line of JSON and flush standard output."""
    sys.stdout.write(json_text(data, sys.stdout) + "\n")
    sys.stdout.flush()


def _attributes(value: Any) -> dict[str, Any]:
    from attrs import fields

    return {field.name: _plain(getattr(value, field.name)) for field in fields(type(value))}


def _plain(value: Any) -> Any:
    from attrs import has

    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return _attributes(value) if has(type(value)) else value
