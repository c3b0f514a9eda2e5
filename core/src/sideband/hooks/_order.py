"""The decorator `hookimpl`, and the order in which the implementations of a hook run.

Implementations are sorted by phase first, so that guards run before all others. Within a phase, the constraints
``before=`` and ``after=`` apply; ties are resolved by the order in the manifest, then by name. So the order does not
depend on the order of registration.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar, overload

import pluggy
from attrs import frozen

from ..ops import Level
from ._errors import HookOrderCycle

PROJECT = "sideband"

F = TypeVar("F", bound=Callable[..., Any])

_pluggy_hookimpl = pluggy.HookimplMarker(PROJECT)
_ATTRIBUTE = "sideband_constraints"


@frozen
class Constraints:
    """The constraints of an implementation: its order within its phase, and the lowest level of its events.

    Attributes:
        before: the plugins that it runs before.
        after: the plugins that it runs after.
        level: the lowest level of the effects and tools that it is called for.
    """

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    level: Level = Level.SAFE


@overload
def hookimpl(function: F, /) -> F: ...
@overload
def hookimpl(
    *, before: str | Iterable[str] = (), after: str | Iterable[str] = (), level: Level = Level.SAFE
) -> Callable[[F], F]: ...
def hookimpl(
    function: Callable[..., Any] | None = None,
    /,
    *,
    before: str | Iterable[str] = (),
    after: str | Iterable[str] = (),
    level: Level = Level.SAFE,
) -> Callable[..., Any]:
    """Mark a function as the implementation of the hook of the same name.

    The function takes ``(event)`` or ``(event, ctx)``. It may be ``async def`` or ``def``; a ``def`` must not block,
    because it cannot be cancelled. Apply ``@staticmethod`` or ``@classmethod`` above this decorator.

    Args:
        function: the function.
        before: the plugins (entry-point names) that must run later. Plugins that are not installed are ignored.
        after: the plugins that must run earlier.
        level: ``op_call``, ``tool_call``: not called for events of a lower level, which then cost nothing.

    Example:
        >>> @hookimpl(after="guard-loop")
        ... async def tool_call(event, ctx):
        ...     return None
    """
    constraints = Constraints(_names("before", before), _names("after", after), Level(level))

    def mark(target: F) -> F:
        setattr(target, _ATTRIBUTE, constraints)
        return _pluggy_hookimpl(target)

    return mark if function is None else mark(function)


def _names(argument: str, value: str | Iterable[str]) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(name, str) and name for name in names):
        raise TypeError(f"hookimpl: `{argument}` must be a plugin name or several, got {value!r}")
    return names


def constraints_of(function: object) -> Constraints | None:
    """Return the ordering constraints of a function, or ``None`` if it is not marked by ``hookimpl``."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, Constraints) else None


class Phase(IntEnum):
    """The primary sort key of implementations, which takes precedence over ``before=`` and ``after=``."""

    GUARD = 0
    NORMAL = 1
    OBSERVER = 2

    @property
    def plural(self) -> str:
        """The name of the plugins of this phase, in the plural."""
        return {Phase.GUARD: "guards", Phase.NORMAL: "normal plugins", Phase.OBSERVER: "observers"}[self]


@frozen
class Placed:
    """The properties of an implementation that determine its position.

    Attributes:
        plugin: the entry-point name.
        phase: its phase.
        constraints: its ordering constraints.
    """

    plugin: str
    phase: Phase
    constraints: Constraints


@frozen
class OrderedImplementation:
    """One line of ``sideband plugins order HOOK``.

    Attributes:
        position: the position, from 1.
        plugin: the entry-point name.
        phase: its phase.
        reasons: the reasons for this position, most important first.
    """

    position: int
    plugin: str
    phase: Phase
    reasons: tuple[str, ...]


def solve(hook: str, placed: Iterable[Placed], manifest: Sequence[str] = ()) -> tuple[OrderedImplementation, ...]:
    """Sort the implementations of ``hook``.

    Args:
        hook: the name of the hook, for the error message.
        placed: the implementations, at most one for each plugin.
        manifest: the configured order of plugins; plugins that are not listed come last.

    Raises:
        HookOrderCycle: if the constraints form a cycle.
    """
    by_name = {one.plugin: one for one in placed}
    declared = _declared(by_name.values())
    ordered: list[OrderedImplementation] = []
    for phase in Phase:
        for name in in_order(hook, {name: one for name, one in by_name.items() if one.phase is phase}, manifest):
            reasons = (f"phase {phase.name.lower()}", *_reasons(by_name[name], by_name, declared[name], manifest))
            ordered.append(OrderedImplementation(len(ordered) + 1, name, phase, reasons))
    return tuple(ordered)


def in_order(hook: str, members: Mapping[str, Placed], manifest: Sequence[str] = ()) -> Iterator[str]:
    """Yield the names of the implementations of ``hook`` in one phase in order.

    Args:
        hook: the name of the hook, for the error message.
        members: the implementations by plugin.
        manifest: the configured order of plugins; plugins that are not listed come last.

    Raises:
        HookOrderCycle: if the constraints form a cycle.
    """
    listed = {plugin: index for index, plugin in enumerate(manifest)}
    earlier: defaultdict[str, set[str]] = defaultdict(set)
    for name in sorted(members):
        earlier[name].update(other for other in members[name].constraints.after if other in members)
        for other in members[name].constraints.before:
            if other in members:
                earlier[other].add(name)
    # The iteration order of a set of strings differs between processes; the printed cycle must not.
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


def _declared(placed: Iterable[Placed]) -> Mapping[str, list[tuple[Placed, str]]]:
    """Return by plugin the others that declare to run before or after it."""
    found: defaultdict[str, list[tuple[Placed, str]]] = defaultdict(list)
    for one in placed:
        for word, names in (("before", one.constraints.before), ("after", one.constraints.after)):
            for name in dict.fromkeys(names):
                found[name].append((one, word))
    return found


def _reasons(
    one: Placed,
    all_of_them: Mapping[str, Placed],
    declared: Iterable[tuple[Placed, str]],
    manifest: Sequence[str],
) -> Iterator[str]:
    for word, names in (("before", one.constraints.before), ("after", one.constraints.after)):
        for name in names:
            yield f"{word} `{name}`: {_status(one, word, all_of_them.get(name))}"
    for other, word in declared:
        if other.phase is one.phase:
            yield f"`{other.plugin}` declares {word}=`{one.plugin}`"
    if one.plugin in manifest:
        yield f"number {manifest.index(one.plugin) + 1} in the manifest"
    else:
        yield "by name"


def _status(one: Placed, word: str, other: Placed | None) -> str:
    if other is None:
        return "ignored, it does not implement this hook"
    if other.phase is one.phase:
        return "own constraint"
    satisfied = (one.phase < other.phase) == (word == "before")
    first, second = sorted((one.phase, other.phase))
    return f"{'satisfied' if satisfied else 'ignored'}, {first.plural} run before {second.plural}"
