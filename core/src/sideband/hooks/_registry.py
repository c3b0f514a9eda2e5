"""The registry of hook implementations, by plugin and in order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn
from weakref import WeakSet

import pluggy
from attrs import define

from ..contexts import PluginContext
from ._dispatch import Hooks
from ._errors import HookFailed, HookInvalid, HookNotFound, HookOrderCycle
from ._event import Event
from ._implementations import Implementation, bundle
from ._order import PROJECT, OrderedImplementation, Phase, constraints_of, solve
from ._reports import Report, log_report
from ._spec import HOOK_SPECS, PLUGGY_SPECS

ContextOf = Callable[[Event], PluginContext | None]


@define
class _Registered:
    """A registered plugin; ``broken`` is the reason why its calls fail, or ``None``."""

    implementation: object
    phase: Phase
    context: ContextOf
    make: Callable[[], object] | None
    broken: str | None = None


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
        namespace = bundle(plugin, implementation, HOOK_SPECS)
        try:
            self._manager.register(namespace, plugin)
        except pluggy.PluginValidationError as error:
            raise HookInvalid(plugin, [str(error)]) from error
        context_of = context if callable(context) else lambda _: context
        self._registered[plugin] = _Registered(implementation, phase, context_of, make)
        hooks = [name for name in vars(namespace) if name in HOOK_SPECS]
        try:
            solved = {hook: self._solve(hook) for hook in hooks}
        except HookOrderCycle as error:
            self._forget(plugin)
            error.plugin = plugin
            raise
        self._implementations.update(solved)

    def unregister(self, plugin: str) -> None:
        """Remove all implementations of a plugin; do nothing if it is not registered.

        A running dispatch still calls it.
        """
        if plugin not in self._registered:
            return
        self._forget(plugin)
        self._solve_all_of(plugin)
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
            self._solve_all_of(plugin)
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
            own, problem = shared.implementation, shared.broken
            if shared.make is not None and problem is None:
                try:
                    own = shared.make()
                except Exception as error:  # noqa: BLE001  a guard that cannot be created denies, like one that fails
                    problem = f"it cannot be created: {type(error).__name__}: {error}"
            derived.register(
                plugin,
                own,
                phase=shared.phase,
                context=lambda event, theirs=shared.context: context(theirs(event)),  # type: ignore[misc]  # mypy knows no default here
                make=shared.make,
            )
            if problem is not None:
                derived.break_off(plugin, problem)
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
        return solve(hook, self._implementations[hook], self._manifest.get(hook, ()))

    def _solve_all_of(self, plugin: str) -> None:
        for hook, implementations in self._implementations.items():
            if any(one.plugin == plugin for one in implementations):
                self._implementations[hook] = self._solve(hook)

    def _solve(self, hook: str) -> tuple[Implementation, ...]:
        found = {one.plugin: one for one in self._found(hook)}
        return tuple(found[one.plugin] for one in solve(hook, found.values(), self._manifest.get(hook, ())))

    def _found(self, hook: str) -> Iterable[Implementation]:
        caller: pluggy.HookCaller = getattr(self._manager.hook, hook)
        for one in caller.get_hookimpls():
            constraints = constraints_of(one.function)
            assert constraints is not None  # noqa: S101  `bundle` rejects functions without a mark
            registered = self._registered[one.plugin_name]
            call = one.function
            if registered.broken is not None:
                call = _raising(HookFailed(hook, one.plugin_name, registered.broken))
            elif "ctx" in (*one.argnames, *one.kwargnames):
                call = _with_context(one.function, registered.context)
            yield Implementation(one.plugin_name, registered.phase, constraints, call)

    def _forget(self, plugin: str) -> None:
        self._manager.unregister(name=plugin)
        del self._registered[plugin]


def _with_context(function: Callable[..., Any], context: ContextOf) -> Callable[[Event], Any]:
    return lambda event: function(event, context(event))


def _raising(error: HookFailed) -> Callable[[Event], NoReturn]:
    def function(_: Event) -> NoReturn:
        raise error.with_traceback(None)  # all calls raise the same error, so its traceback must not grow

    return function
