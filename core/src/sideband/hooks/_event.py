"""What an event is, and the kinds of events: an event class declares all that there is to know of its hook.

An event is named after its hook (``ToolCall`` for ``tool_call``), is frozen, and its payload can't be changed in
place. Messages, requests and responses are plain data, as they are stored. The docstring of an event is the reference
of its hook; the example in it is run by a test.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
R = TypeVar("R")

_INNER_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


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


class Event:
    """The base of all events.

    Attributes:
        hook: the name of the hook, made from the name of the class.
        kind: how answers become an outcome.
        on_failure: what a failing implementation means.
        deadline: the seconds that all implementations have together.
        may_return: the types of an answer; ``None`` is always one. Empty: nothing but ``None``.
        items: for answers that are lists, the type of an item.
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
    """An event that implementations change one after the other. ``R`` is what comes out in the end.

    One that declares no ``may_return`` is changed by returning a changed copy of it.
    """

    __slots__ = ()
    kind = Kind.UPDATE

    def changed(self, answer: Any, plugin: str) -> Any:  # noqa: ARG002  for events whose answers bear a name
        """The event as the next implementation sees it; anything else ends the dispatch and is its outcome.

        Args:
            answer: what an implementation returned, of a type that the spec allows.
            plugin: who returned it.
        """
        return answer


class DecideEvent(Event):
    """An event that is about to happen, and may be denied.

    Attributes:
        replaceable: the name of the field that ``Replace`` changes; empty if there is none.
    """

    __slots__ = ()
    kind = Kind.DECIDE
    replaceable: ClassVar[str] = ""

    @property
    def final_arguments(self) -> Mapping[str, Any] | None:
        """What ``Replace`` changes, or ``None``."""
        return getattr(self, self.replaceable) if self.replaceable else None

    def with_arguments(self, arguments: Mapping[str, Any]) -> Self:
        """The same event with other arguments."""
        return attrs.evolve(self, **{self.replaceable: arguments})  # type: ignore[misc]  # every subclass is an attrs class


class CollectEvent(Event, Generic[R]):
    """An event that every implementation may answer with a list of ``R``."""

    __slots__ = ()
    kind = Kind.COLLECT
    may_return = (list, tuple)


class FirstEvent(Event, Generic[R]):
    """An event that the first implementation with an answer, an ``R``, answers for all."""

    __slots__ = ()
    kind = Kind.FIRST
    on_failure = Failure.NEXT


class ObserveEvent(Event):
    """An event that has happened. No implementation can change it, and the run waits for them all."""

    __slots__ = ()
    kind = Kind.OBSERVE
    on_failure = Failure.REPORT
    deadline = 5
