"""What a hook is, as data: its event, its kind, what may be returned, and what happens if a plugin fails."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

import pluggy
from attrs import field, frozen

from ._events import Event

__all__ = ["PROJECT", "Failure", "HookSpec", "Kind", "spec", "specs_of"]

PROJECT = "sideband"
_hookspec = pluggy.HookspecMarker(PROJECT)

F = TypeVar("F", bound=Callable[..., Any])


class Kind(StrEnum):
    """How the answers of several implementations become one outcome."""

    UPDATE = "update"
    """Each changes the event, and the next one sees the change."""
    COLLECT = "collect"
    """All answers, each with the name of its plugin."""
    DECIDE = "decide"
    """The first ``Deny`` wins, then ``Ask``; ``Replace`` changes the arguments for everybody."""
    FIRST = "first"
    """The first answer that is not ``None``."""
    OBSERVE = "observe"
    """No answer."""


class Failure(StrEnum):
    """What a failing implementation means: one that raises, overruns the deadline, or returns the wrong type."""

    SKIP = "skipped, reported"
    DENY = "denied"
    WITHHOLD_IF_GUARD = "guards: result withheld; else skipped, reported"
    REPORT = "reported"
    NEXT = "next one, then the default"


@frozen
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
        function: the function with the documentation.
    """

    name: str
    event: type[Event]
    kind: Kind
    on_failure: Failure
    deadline: float
    may_return: tuple[type, ...]
    items: type | None
    function: Callable[..., Any] = field(repr=False, eq=False)

    @property
    def doc(self) -> str:
        """What it is for, with a runnable example."""
        return inspect.getdoc(self.function) or ""

    @property
    def returns(self) -> str:
        """What an implementation may return, for people."""
        if self.items:
            return f"list of {self.items.__name__}"
        return ", ".join(one.__name__ for one in self.may_return) or "None"


def spec(
    event: type[Event],
    kind: Kind,
    *returns: type,
    on_failure: Failure,
    deadline: float,
    items: type | None = None,
) -> Callable[[F], F]:
    """Declare the hook that the decorated function, named like it, documents. Modules of specs are read by pluggy."""

    def declare(function: F) -> F:
        declared = HookSpec(
            name=function.__name__,
            event=event,
            kind=kind,
            on_failure=on_failure,
            deadline=deadline,
            may_return=(list, tuple) if items else returns,
            items=items,
            function=function,
        )
        function.sideband_hook = declared  # type: ignore[attr-defined]  # read back by `specs_of`
        return _hookspec(function)

    return declare


def specs_of(module: object) -> dict[str, HookSpec]:
    """The specs that a module declares, in the order in which they stand there."""
    found = (getattr(value, "sideband_hook", None) for value in vars(module).values())
    return {one.name: one for one in found if isinstance(one, HookSpec)}
