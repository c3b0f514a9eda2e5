"""The registry of hook implementations, by plugin and in order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn
from weakref import WeakSet

import pluggy
from attrs import define

from ..contexts import PluginContext
from ._dispatch import Hooks
from ._errors import HookFailed, HookInvalid, HookNotFound, HookOrderCycle
from ._event import Event
from ._implementations import Implementation, bundle
from ._order import PROJECT, OrderedImplementation, Phase, Placed, constraints_of, in_order, solve
from ._reports import Report, log_report
from ._spec import HOOK_SPECS, PLUGGY_SPECS

ContextOf = Callable[[Event], PluginContext | None]


@define
class _Registered:
    """A registered plugin, with its functions by hook; ``broken`` is the reason why its calls fail, or ``None``."""

    functions: Mapping[str, pluggy.HookImpl]
    phase: Phase
    context: ContextOf
    make: Callable[[], object] | None
    broken: str | None = None

    def placed(self, hook: str, plugin: str) -> Placed:
        """Return the properties that determine the position of its function."""
        constraints = constraints_of(self.functions[hook].function)
        assert constraints is not None  # noqa: S101  `bundle` rejects functions without a mark
        return Placed(plugin, self.phase, constraints)


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


class HookRegistry(Hooks):
    """The hooks of one host: registers implementations and dispatches events to them.

    Args:
        report: called with each failure and, if ``trace`` is set, with each call; by default, failures are logged.
        trace: whether to report successful calls too.
        deadlines: deadlines in seconds, by hook, which override those of the specs.
        order: the configured order of plugins, by hook.

    Attributes:
        approver: answers the questions of these guards about effects; ``None`` for the approver of the host.

    Raises:
        HookNotFound: if ``deadlines`` or ``order`` names an unknown hook.

    Example:
        >>> import anyio
        >>> from types import SimpleNamespace
        >>> from sideband.hooks import Deny, HookRegistry, Phase, ToolCall, hookimpl
        >>> class NoShell:
        ...     @hookimpl
        ...     def tool_call(self, event: ToolCall) -> Deny | None:
        ...         return Deny("no shell here") if event.tool == "shell.run" else None
        >>> hooks = HookRegistry()
        >>> hooks.register("no-shell", NoShell(), phase=Phase.GUARD)
        >>> decision = anyio.run(hooks.decide, ToolCall("c1", "shell.run", {}))
        >>> decision.verdict.value, decision.plugin, decision.reason
        ('deny', 'no-shell', 'no shell here')
    """

    def __init__(
        self,
        *,
        report: Report = log_report,
        trace: bool = False,
        deadlines: Mapping[str, float] | None = None,
        order: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(report=report, trace=trace, deadlines=deadlines)
        self.approver: Callable[[str, Any], Awaitable[bool]] | None = None
        for hook in order or ():
            if hook not in HOOK_SPECS:
                raise HookNotFound(hook, known=HOOK_SPECS)
        self._manifest = {hook: tuple(plugins) for hook, plugins in (order or {}).items()}
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(PLUGGY_SPECS)
        self._registered: dict[str, _Registered] = {}
        self._members: dict[str, dict[str, None]] = {hook: {} for hook in HOOK_SPECS}
        self._sorted: dict[tuple[str, Phase], tuple[str, ...]] = {}
        self._constrained: set[str] = set()
        self._implementations = _Solved(self._solve)
        self._derived: WeakSet[HookRegistry] = WeakSet()

    @property
    def plugins(self) -> tuple[str, ...]:
        """The names of the registered plugins, sorted."""
        return tuple(sorted(self._registered))

    def register(
        self,
        plugin: str,
        implementation: object,
        *,
        phase: Phase = Phase.NORMAL,
        context: PluginContext | ContextOf | None = None,
        make: Callable[[], object] | None = None,
    ) -> None:
        """Register the hook implementations of a plugin. If one is invalid, nothing is registered.

        Args:
            plugin: the entry-point name.
            implementation: a module, or an instance of a class, with functions marked by ``hookimpl``.
            phase: ``GUARD`` for guards; ``OBSERVER`` for plugins that run last, to see the changes of all others.
            context: the ``ctx`` of its implementations, or a function that returns it for an event.
            make: a factory of instances like ``implementation``, if each agent needs its own.

        Raises:
            HookInvalid: if an implementation is invalid; the error lists all problems.
            HookOrderCycle: if its ordering constraints form a cycle with those of registered plugins.
        """
        if plugin in self._registered:
            raise HookInvalid(plugin, ["it is already registered"])
        functions = self._functions(plugin, implementation)
        context_of = context if callable(context) else lambda _: context
        registered = self._add(plugin, _Registered(functions, phase, context_of, make))
        placed = [registered.placed(hook, plugin) for hook in functions]
        named = {name for one in placed for name in (*one.constraints.before, *one.constraints.after)}
        if named or plugin in self._constrained:
            # Only these can complete a cycle. All others are sorted when the hook is first dispatched.
            try:
                self._constrained |= named
                for hook in functions:
                    self._order(hook, phase)
            except HookOrderCycle as error:
                self._forget(plugin)
                error.plugin = plugin
                raise

    def unregister(self, plugin: str) -> None:
        """Remove all implementations of a plugin; do nothing if it is not registered.

        A running dispatch still calls it.
        """
        if plugin not in self._registered:
            return
        self._forget(plugin)
        for derived in self._derived:
            derived.unregister(plugin)

    def break_off(self, plugin: str, reason: str) -> None:
        """Make every further call of a plugin fail without calling it; do nothing if it is not registered.

        Use it for a plugin that no longer works, for instance because its ``lifespan`` ended. Unlike with
        ``unregister``, the failure policies apply: a broken guard denies, whereas a missing one would not be noticed.

        Args:
            plugin: the entry-point name.
            reason: the reason as a clause, such as ``its lifespan ended``.
        """
        if plugin in self._registered:
            self._registered[plugin].broken = reason
            for hook in self._registered[plugin].functions:
                self._implementations.pop(hook, None)
        for derived in self._derived:
            derived.break_off(plugin, reason)

    def derive(self, context: Callable[[PluginContext | None], PluginContext | None]) -> HookRegistry:
        """Return a registry with the same plugins for an agent, which gets its own contexts and guards.

        Plugins registered with ``make``, such as guards, are instantiated again; all others are shared. Plugins that
        are unregistered or broken off here are so in the derived registry too.

        Args:
            context: returns the agent's context for a context of the host.
        """
        derived = HookRegistry(report=self._report, trace=self.trace, deadlines=self._deadlines, order=self._manifest)
        for plugin, shared in self._registered.items():
            functions, problem = shared.functions, shared.broken
            if shared.make is not None and problem is None:
                try:
                    own = shared.make()
                except (Exception, SystemExit) as error:  # noqa: BLE001  a guard that cannot be created denies, like one that fails
                    problem = f"it cannot be created: {type(error).__name__}: {error}"
                else:
                    functions = derived._functions(plugin, own)
            context_of = partial(_of_agent, context, shared.context)
            derived._add(plugin, _Registered(functions, shared.phase, context_of, shared.make, problem))
        derived._constrained |= self._constrained
        for hook in HOOK_SPECS:
            derived._sorted.update(((hook, phase), self._order(hook, phase)) for phase in Phase)
        self._derived.add(derived)
        return derived

    def context_of(self, plugin: str, event: Event) -> PluginContext | None:
        """Return the ``ctx`` of a plugin's implementations for an event, for callbacks that the plugin registered.

        Raises:
            KeyError: if the plugin is not registered.
        """
        return self._registered[plugin].context(event)

    def order(self, hook: str) -> tuple[OrderedImplementation, ...]:
        """Return the implementations of a hook in the order in which they run, with the reasons for their positions.

        Raises:
            HookNotFound: if the hook is unknown.
        """
        if hook not in HOOK_SPECS:
            raise HookNotFound(hook, known=HOOK_SPECS)
        ordered = (plugin for phase in Phase for plugin in self._order(hook, phase))
        placed = [self._registered[plugin].placed(hook, plugin) for plugin in ordered]
        return solve(hook, placed, self._manifest.get(hook, ()))

    def implements(self, plugin: str, hook: str) -> bool:
        """Return whether a plugin is registered and implements a hook."""
        return plugin in self._registered and hook in self._registered[plugin].functions

    def _functions(self, plugin: str, implementation: object) -> Mapping[str, pluggy.HookImpl]:
        """Return the functions of a plugin by hook, which pluggy has checked."""
        namespace = bundle(plugin, implementation, HOOK_SPECS)
        try:
            self._manager.register(namespace, plugin)
            return {caller.name: caller.get_hookimpls()[0] for caller in self._manager.get_hookcallers(namespace) or ()}
        except pluggy.PluginValidationError as error:
            raise HookInvalid(plugin, [str(error)]) from error
        finally:
            self._manager.unregister(namespace)

    def _add(self, plugin: str, registered: _Registered) -> _Registered:
        self._registered[plugin] = registered
        for hook in registered.functions:
            self._members[hook][plugin] = None
            self._invalidate(hook, registered.phase)
        return registered

    def _forget(self, plugin: str) -> None:
        registered = self._registered.pop(plugin)
        for hook in registered.functions:
            del self._members[hook][plugin]
            self._invalidate(hook, registered.phase)

    def _invalidate(self, hook: str, phase: Phase) -> None:
        self._sorted.pop((hook, phase), None)
        self._implementations.pop(hook, None)

    def _order(self, hook: str, phase: Phase) -> tuple[str, ...]:
        """Return the names of the plugins of a phase in order."""
        found = self._sorted.get((hook, phase))
        if found is None:
            members = {
                plugin: self._registered[plugin].placed(hook, plugin)
                for plugin in self._members[hook]
                if self._registered[plugin].phase is phase
            }
            found = self._sorted[hook, phase] = tuple(in_order(hook, members, self._manifest.get(hook, ())))
        return found

    def _solve(self, hook: str) -> tuple[Implementation, ...]:
        return tuple(self._implementation(hook, plugin) for phase in Phase for plugin in self._order(hook, phase))

    def _implementation(self, hook: str, plugin: str) -> Implementation:
        registered = self._registered[plugin]
        one = registered.functions[hook]
        call = one.function
        if registered.broken is not None:
            call = _raising(HookFailed(hook, plugin, registered.broken))
        elif "ctx" in (*one.argnames, *one.kwargnames):
            call = _with_context(one.function, registered.context)
        placed = registered.placed(hook, plugin)
        return Implementation(plugin, placed.phase, placed.constraints, call)


def _of_agent(
    context: Callable[[PluginContext | None], PluginContext | None], theirs: ContextOf, event: Event
) -> PluginContext | None:
    return context(theirs(event))


def _with_context(function: Callable[..., Any], context: ContextOf) -> Callable[[Event], Any]:
    return lambda event: function(event, context(event))


def _raising(error: HookFailed) -> Callable[[Event], NoReturn]:
    def function(_: Event) -> NoReturn:
        raise error.with_traceback(None)  # all calls raise the same error, so its traceback must not grow

    return function
