"""All hooks as data, read from the classes of their events."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs
import pluggy

from . import _answered, _changed, _decided, _observed
from ._event import Event, Failure, Kind
from ._order import PROJECT


@attrs.frozen
class HookSpec:
    """One hook. ``sideband hooks list`` prints these.

    Attributes:
        name: the name of the hook, and of the function that implements it.
        event: the class of its event.
        kind: how answers become an outcome.
        on_failure: what a failing implementation means.
        deadline: the seconds that all implementations have together.
        may_return: the types of an answer; ``None`` is always one. Empty: nothing but ``None``.
        items: for answers that are lists, the type of an item.
    """

    name: str
    event: type[Event]
    kind: Kind
    on_failure: Failure
    deadline: float
    may_return: tuple[type, ...]
    items: type | None

    @property
    def doc(self) -> str:
        """What it is for, with a runnable example."""
        return inspect.getdoc(self.event) or ""

    @property
    def returns(self) -> str:
        """What an implementation may return, for people."""
        if self.items:
            return f"list of {self.items.__name__}"
        return ", ".join(one.__name__ for one in self.may_return) or "None"


def _spec(event: type[Event]) -> HookSpec:
    may_return = event.may_return or ((event,) if event.kind is Kind.UPDATE else ())
    return HookSpec(event.hook, event, event.kind, event.on_failure, event.deadline, may_return, event.items)


HOOK_SPECS: Final[Mapping[str, HookSpec]] = MappingProxyType(
    {
        event.hook: _spec(event)
        for module in (_changed, _decided, _answered, _observed)
        for event in vars(module).values()
        if isinstance(event, type) and attrs.has(event) and issubclass(event, Event)
    }
)


@pluggy.HookspecMarker(PROJECT)
def _signature(event: object, ctx: object) -> None:
    """What every implementation takes, as pluggy wants to be told."""


PLUGGY_SPECS: Final = type("HookSpecs", (), dict.fromkeys(HOOK_SPECS, _signature))
