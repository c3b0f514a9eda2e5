"""The specs of all hooks, derived from the event classes."""

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
    """The spec of one hook, as listed by ``sideband hooks list``.

    Attributes:
        name: the name of the hook, and of the function that implements it.
        event: the event class.
        kind: how answers are combined.
        on_failure: what happens when an implementation fails.
        deadline: the deadline of a dispatch in seconds, shared by all implementations.
        may_return: the types that an implementation may return besides ``None``.
        items: the type of the items, if an answer is a list.
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
        """The documentation of the hook, with a runnable example."""
        return inspect.getdoc(self.event) or ""

    @property
    def returns(self) -> str:
        """The types that an implementation may return, as text."""
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
"""The specification of each hook by name."""


@pluggy.HookspecMarker(PROJECT)
def _signature(event: object, ctx: object) -> None:
    """Declare the parameters of all implementations for pluggy."""


PLUGGY_SPECS: Final = type("HookSpecs", (), dict.fromkeys(HOOK_SPECS, _signature))
