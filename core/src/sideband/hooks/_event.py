"""The base classes of events, one for each kind of hook. An event class declares everything about its hook.

An event is named after its hook (``ToolCall`` for ``tool_call``) and is frozen, including its payload. Messages,
requests and responses are plain data in their stored form. The docstring of an event is the reference of its hook; a
test runs the example in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar, Generic, Self, TypeVar

import attrs

__all__ = [
    "CollectEvent",
    "DecideEvent",
    "Event",
    "Failure",
    "FirstEvent",
    "Kind",
    "Message",
    "ObserveEvent",
    "UpdateEvent",
]

Message = Mapping[str, Any]
"""A message as plain data, in the form of ``sideband.messages``."""
R = TypeVar("R")

_INNER_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


class Kind(StrEnum):
    """How the answers of several implementations are combined."""

    UPDATE = "update"
    """Each implementation may change the event; the next one sees the change."""
    COLLECT = "collect"
    """All answers are collected, each with the name of its plugin."""
    DECIDE = "decide"
    """The first ``Deny`` wins, then ``Ask``; ``Replace`` changes the arguments for all implementations."""
    FIRST = "first"
    """The first answer that is not ``None`` wins."""
    OBSERVE = "observe"
    """Implementations return nothing."""


class Failure(StrEnum):
    """What happens when an implementation raises, exceeds the deadline, or returns the wrong type."""

    SKIP = "skipped, reported"
    DENY = "denied"
    WITHHOLD_IF_GUARD = "guards: result withheld; else skipped, reported"
    REPORT = "reported"
    NEXT = "next implementation, then the default"


class Event:
    """Base class of all events.

    Attributes:
        hook: the name of the hook, derived from the name of the class.
        kind: how answers are combined.
        on_failure: what happens when an implementation fails.
        deadline: the deadline of a dispatch in seconds, shared by all implementations.
        may_return: the types that an implementation may return besides ``None``.
        items: the type of the items, if an answer is a list.
    """

    __slots__ = ()
    hook: ClassVar[str] = ""
    kind: ClassVar[Kind]
    on_failure: ClassVar[Failure] = Failure.SKIP
    deadline: ClassVar[float] = 10
    may_return: ClassVar[tuple[type, ...]] = ()
    items: ClassVar[type | None] = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.hook = _INNER_CAPITAL.sub("_", cls.__name__).lower()


class UpdateEvent(Event, Generic[R]):
    """An event that implementations change one after the other. ``R`` is the type of the outcome.

    If ``may_return`` is empty, implementations return a modified copy of the event.
    """

    __slots__ = ()
    kind = Kind.UPDATE

    def changed(self, answer: Any, plugin: str) -> Any:  # noqa: ARG002  for events whose answers have a `plugin`
        """Return the event for the next implementation; any other type ends the dispatch and is its outcome.

        Args:
            answer: the value that an implementation returned, of a type that the spec allows.
            plugin: the plugin that returned it.
        """
        return answer


class DecideEvent(Event):
    """An event that is about to happen, and may be denied.

    Attributes:
        replaceable: the name of the field that ``Replace`` changes; empty if ``Replace`` is not supported.
    """

    __slots__ = ()
    kind = Kind.DECIDE
    replaceable: ClassVar[str] = ""

    @property
    def final_arguments(self) -> Mapping[str, Any] | None:
        """The arguments that ``Replace`` changes, or ``None`` if it is not supported."""
        return getattr(self, self.replaceable) if self.replaceable else None

    def with_arguments(self, arguments: Mapping[str, Any]) -> Self:
        """Return a copy of the event with other arguments."""
        return attrs.evolve(self, **{self.replaceable: arguments})  # type: ignore[misc]  # every subclass is an attrs class


class CollectEvent(Event, Generic[R]):
    """An event to which every implementation may return a list of ``R``."""

    __slots__ = ()
    kind = Kind.COLLECT
    may_return: ClassVar[tuple[type, ...]] = (list, tuple)

    def collected(self, answer: Sequence[R]) -> Sequence[R]:
        """Return the items of an answer, which are of the type that the spec allows.

        Raises:
            ValueError: if they are invalid together. The plugin has then failed.
        """
        return answer


class FirstEvent(Event, Generic[R]):
    """An event whose outcome is the first answer, of type ``R``."""

    __slots__ = ()
    kind = Kind.FIRST
    on_failure = Failure.NEXT


class ObserveEvent(Event):
    """An event that has happened. Implementations cannot change it; the run waits until all have returned."""

    __slots__ = ()
    kind = Kind.OBSERVE
    on_failure = Failure.REPORT
    deadline = 5
