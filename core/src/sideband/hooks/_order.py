"""The decorator that makes a function an implementation of a hook, and in which order those of one hook run, and why.

Phases come first, so nothing that is not a guard can step before a guard. Within a phase the wishes ``before=`` and
``after=`` hold; what they leave open is decided by the order in the manifest, then by name. So the order depends only
on what is registered, never on when.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar, overload

import pluggy
from attrs import frozen

from ._errors import HookOrderCycle

PROJECT = "sideband"

F = TypeVar("F", bound=Callable[..., Any])

_pluggy_hookimpl = pluggy.HookimplMarker(PROJECT)
_ATTRIBUTE = "sideband_wishes"


@frozen
class Wishes:
    """Where an implementation wants to stand among the others of its phase."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@overload
def hookimpl(function: F, /) -> F: ...
@overload
def hookimpl(*, before: str | Iterable[str] = (), after: str | Iterable[str] = ()) -> Callable[[F], F]: ...
def hookimpl(
    function: Callable[..., Any] | None = None,
    /,
    *,
    before: str | Iterable[str] = (),
    after: str | Iterable[str] = (),
) -> Callable[..., Any]:
    """Make a function implement the hook that it is named after.

    It takes ``(event)`` or ``(event, ctx)``, and may be ``async def`` or ``def``. A ``def`` must not block, as nothing
    can interrupt it. Below ``@staticmethod`` and ``@classmethod`` it comes first: they wrap what it returns.

    Args:
        function: the function.
        before: the plugins (entry-point names) that must come later. Those that are not there are ignored.
        after: the plugins that must come earlier.

    Example:
        >>> @hookimpl(after="guard-loop")
        ... async def tool_call(event, ctx):
        ...     return None
    """
    wishes = Wishes(_names("before", before), _names("after", after))

    def mark(target: F) -> F:
        setattr(target, _ATTRIBUTE, wishes)
        return _pluggy_hookimpl(target)

    return mark if function is None else mark(function)


def _names(argument: str, value: str | Iterable[str]) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(name, str) and name for name in names):
        raise TypeError(f"hookimpl: `{argument}` takes names of plugins, not {value!r}")
    return names


def wishes_of(function: object) -> Wishes | None:
    """Where a marked function wants to stand; ``None`` if it is not marked by ``hookimpl``."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, Wishes) else None


class Phase(IntEnum):
    """When an implementation runs, whatever it wishes."""

    GUARD = 0
    NORMAL = 1
    OBSERVER = 2

    @property
    def plural(self) -> str:
        """For sentences about it."""
        return {Phase.GUARD: "guards", Phase.NORMAL: "normal plugins", Phase.OBSERVER: "observers"}[self]


@frozen
class Placed:
    """One implementation, as far as the order is concerned.

    Attributes:
        plugin: the entry-point name.
        phase: its phase.
        wishes: where it wants to stand.
    """

    plugin: str
    phase: Phase
    wishes: Wishes


@frozen
class OrderedImplementation:
    """One line of ``sideband plugins order HOOK``.

    Attributes:
        position: from 1.
        plugin: the entry-point name.
        phase: its phase.
        reasons: why it stands there, the strongest first.
    """

    position: int
    plugin: str
    phase: Phase
    reasons: tuple[str, ...]


def solve(hook: str, placed: Iterable[Placed], manifest: Sequence[str] = ()) -> tuple[OrderedImplementation, ...]:
    """Put the implementations of ``hook`` in order.

    Args:
        hook: its name, for the message.
        placed: at most one for each plugin.
        manifest: plugins in the order that the configuration names; those it does not name come after them.

    Raises:
        HookOrderCycle: wishes exclude each other.
    """
    by_name = {one.plugin: one for one in placed}
    listed = {plugin: index for index, plugin in enumerate(manifest)}
    ordered: list[OrderedImplementation] = []
    for phase in Phase:
        members = {name: one for name, one in by_name.items() if one.phase is phase}
        for name in _sorted(hook, members, listed):
            reasons = (f"phase {phase.name.lower()}", *_reasons(by_name[name], by_name, listed))
            ordered.append(OrderedImplementation(len(ordered) + 1, name, phase, reasons))
    return tuple(ordered)


def _sorted(hook: str, members: dict[str, Placed], listed: dict[str, int]) -> Iterator[str]:
    earlier: defaultdict[str, set[str]] = defaultdict(set)
    for name in sorted(members):
        earlier[name].update(other for other in members[name].wishes.after if other in members)
        for other in members[name].wishes.before:
            if other in members:
                earlier[other].add(name)
    # Sets of strings have another order in each process; the printed cycle must not.
    sorter = TopologicalSorter({name: sorted(earlier[name]) for name in sorted(members)})
    try:
        sorter.prepare()
    except CycleError as error:
        raise HookOrderCycle(hook, error.args[1]) from None

    def rank(name: str) -> tuple[int, str]:
        return listed.get(name, len(listed)), name

    ready: list[tuple[int, str]] = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heapq.heappush(ready, rank(name))
        _, first = heapq.heappop(ready)
        yield first
        sorter.done(first)


def _reasons(one: Placed, all_of_them: dict[str, Placed], listed: dict[str, int]) -> Iterator[str]:
    for word, names in (("before", one.wishes.before), ("after", one.wishes.after)):
        for name in names:
            yield f"{word} `{name}`: {_wish(one, word, all_of_them.get(name))}"
    for other in all_of_them.values():
        if other.phase is one.phase and one.plugin in other.wishes.before:
            yield f"`{other.plugin}` wants to run before it"
        if other.phase is one.phase and one.plugin in other.wishes.after:
            yield f"`{other.plugin}` wants to run after it"
    if one.plugin in listed:
        yield f"number {listed[one.plugin] + 1} in the manifest"
    else:
        yield "by name"


def _wish(one: Placed, word: str, other: Placed | None) -> str:
    if other is None:
        return "ignored, it does not implement this hook"
    if other.phase is one.phase:
        return "its own wish"
    granted = (one.phase < other.phase) == (word == "before")
    first, second = sorted((one.phase, other.phase))
    return f"{'granted' if granted else 'refused'}, {first.plural} run before {second.plural}"
