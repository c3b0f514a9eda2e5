"""Registered plugins, and the order of their implementations. A host and its agents share them until one changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from ..contexts import PluginContext
from ._event import Event
from ._implementations import Implementation
from ._order import Phase, in_order
from ._spec import HOOK_SPECS

ContextOf = Callable[[Event], PluginContext | None]

_PHASES = tuple(Phase)


@frozen
class Registration:
    """A registered plugin: its implementations by hook, phase, context, factory of its instances, and package."""

    functions: Mapping[str, Implementation]
    phase: Phase
    context: ContextOf
    make: Callable[[], object] | None
    package: str = ""


class _Solved(dict[str, tuple[Implementation, ...]]):
    """Implementations by hook, each solved when it is first needed, so that registering n plugins sorts them once."""

    def __init__(self, solve: Callable[[str], tuple[Implementation, ...]]) -> None:
        super().__init__()
        self._solve = solve

    def __missing__(self, hook: str) -> tuple[Implementation, ...]:
        if hook not in HOOK_SPECS:
            raise KeyError(hook)
        self[hook] = found = self._solve(hook)
        return found


class Registrations:
    """Registered plugins by name.

    Args:
        manifest: the configured order of plugins, by hook.

    Attributes:
        plugins: the plugins.
        solved: their implementations by hook, in order.
    """

    def __init__(self, manifest: Mapping[str, Sequence[str]]) -> None:
        self.plugins: dict[str, Registration] = {}
        self.solved = _Solved(self._solve)
        self._manifest = manifest
        self._members: dict[tuple[str, Phase], tuple[str, ...]] = {}
        self._sorted: dict[tuple[str, Phase], tuple[str, ...]] = {}

    def copy(self) -> Registrations:
        """Return a copy, in which all hooks are solved. No plugin is copied."""
        other = Registrations(self._manifest)
        other.plugins = dict(self.plugins)
        other.solved.update({hook: self.solved[hook] for hook in HOOK_SPECS})
        other._members = dict(self._members)
        other._sorted = dict(self._sorted)
        return other

    def add(self, plugin: str, added: Registration) -> None:
        """Add a plugin."""
        self.plugins[plugin] = added
        for hook in added.functions:
            place = (hook, added.phase)
            self._members[place] = (*self._members.get(place, ()), plugin)
            self._sorted.pop(place, None)
            self.solved.pop(hook, None)

    def remove(self, plugin: str) -> None:
        """Remove a plugin."""
        removed = self.plugins.pop(plugin)
        for hook in removed.functions:
            place = (hook, removed.phase)
            self._members[place] = tuple([one for one in self._members[place] if one != plugin])
            self._sorted.pop(place, None)
            self.solved.pop(hook, None)

    def replace(self, plugin: str, other: Registration) -> None:
        """Replace a plugin by one that usually implements the same hooks in the same order."""
        if _constraints(other) != _constraints(self.plugins[plugin]):
            self.remove(plugin)
            self.add(plugin, other)
            return
        self.plugins[plugin] = other
        for hook in other.functions:
            self.solved.pop(hook, None)

    def put(self, plugin: str, other: Registration) -> None:
        """Add a plugin, or replace the one with its name."""
        if plugin in self.plugins:
            self.replace(plugin, other)
        else:
            self.add(plugin, other)

    def order(self, hook: str, phase: Phase) -> tuple[str, ...]:
        """Return the names of the plugins of a phase that implement a hook, in order.

        Raises:
            HookOrderCycle: if the constraints form a cycle.
        """
        found = self._sorted.get((hook, phase))
        if found is None:
            members = {one: self.plugins[one].functions[hook] for one in self._members.get((hook, phase), ())}
            found = tuple(in_order(hook, members, self._manifest.get(hook, ()))) if members else ()
            self._sorted[hook, phase] = found
        return found

    def _solve(self, hook: str) -> tuple[Implementation, ...]:
        return tuple([self.plugins[one].functions[hook] for phase in _PHASES for one in self.order(hook, phase)])


def _constraints(one: Registration) -> Mapping[str, object]:
    return {hook: function.constraints for hook, function in one.functions.items()}
