"""Which plugin implements which hook, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn
from weakref import WeakSet

import pluggy
from attrs import define

from ..contexts import PluginContext
from ._dispatch import Hooks
from ._errors import HookFailed, HookInvalid, HookNotFound, HookOrderCycle
from ._event import Event
from ._implementations import Implementation, bundle
from ._order import PROJECT, OrderedImplementation, Phase, solve, wishes_of
from ._reports import Report, log_report
from ._spec import HOOK_SPECS, PLUGGY_SPECS

ContextOf = Callable[[Event], PluginContext | None]


@define
class _Registered:
    """A plugin as it was registered, and why it is broken if it is."""

    implementation: object
    phase: Phase
    context: ContextOf
    make: Callable[[], object] | None
    broken: str | None = None


class HookRegistry(Hooks):
    """The hooks of one host: registers implementations, and dispatches events to them.

    Args:
        report: takes each failure, and with ``trace`` each call; by default, failures are logged.
        trace: whether calls that succeed are reported too.
        deadlines: seconds, by hook, in place of those in the specs.
        order: plugins, by hook, in the order that the configuration names.

    Raises:
        HookNotFound: ``deadlines`` or ``order`` names an unknown hook.

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
        """The plugins that are registered, by name."""
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
        """Add all hook implementations of one plugin, or none of them.

        Args:
            plugin: the entry-point name.
            implementation: a module, or an instance of a class, with functions marked by ``hookimpl``.
            phase: ``GUARD`` for guards; ``OBSERVER`` for those that want to see what the others have made of it.
            context: the ``ctx`` of its implementations, or what makes it for an event.
            make: makes another instance like ``implementation``, for those who need one of their own.

        Raises:
            HookInvalid: everything that is wrong with it.
            HookOrderCycle: its wishes, and those of others that are there, exclude each other.
        """
        if plugin in self._registered:
            raise HookInvalid(plugin, ["it is registered already"])
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
        """Take all implementations of a plugin away; one that is not there is no error.

        A dispatch that is under way still asks it.
        """
        if plugin not in self._registered:
            return
        self._forget(plugin)
        self._solve_all_of(plugin)
        for derived in self._derived:
            derived.unregister(plugin)

    def break_off(self, plugin: str, reason: str) -> None:
        """Let every further call of a plugin fail, without calling it; one that is not there is no error.

        For a plugin that can't work any more, because its ``lifespan`` ended for instance. Unlike ``unregister``, the
        failure policies apply: a guard that is broken denies, instead of not being there.

        Args:
            plugin: the entry-point name.
            reason: why, as half a sentence: ``its lifespan ended``.
        """
        if plugin in self._registered:
            self._registered[plugin].broken = reason
            self._solve_all_of(plugin)
        for derived in self._derived:
            derived.break_off(plugin, reason)

    def derive(self, context: Callable[[PluginContext | None], PluginContext | None]) -> HookRegistry:
        """The same implementations, for an agent: with contexts that know it, and guards that nobody else counts in.

        What can be made anew, as guards can, is made anew; everything else is shared. A plugin that breaks off here
        breaks off there.

        Args:
            context: makes the agent's context out of the host's.
        """
        derived = HookRegistry(report=self._report, trace=self.trace, deadlines=self._deadlines, order=self._manifest)
        for plugin, shared in self._registered.items():
            own, problem = shared.implementation, shared.broken
            if shared.make is not None and problem is None:
                try:
                    own = shared.make()
                except Exception as error:  # noqa: BLE001  a guard that can't be made denies, like one that fails
                    problem = f"it can't be made: {type(error).__name__}: {error}"
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
        """The ``ctx`` that a plugin's implementation gets for an event: for what it has handed over to be called later.

        Raises:
            KeyError: no such plugin is registered.
        """
        return self._registered[plugin].context(event)

    def order(self, hook: str) -> tuple[OrderedImplementation, ...]:
        """The implementations of a hook in the order in which they run, with the reasons for it.

        Raises:
            HookNotFound: there is no such hook.
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
            wishes = wishes_of(one.function)
            assert wishes is not None  # noqa: S101  `bundle` lets nothing else through
            registered = self._registered[one.plugin_name]
            call = one.function
            if registered.broken is not None:
                call = _raising(HookFailed(hook, one.plugin_name, registered.broken))
            elif "ctx" in (*one.argnames, *one.kwargnames):
                call = _with_context(one.function, registered.context)
            yield Implementation(one.plugin_name, registered.phase, wishes, call)

    def _forget(self, plugin: str) -> None:
        self._manager.unregister(name=plugin)
        del self._registered[plugin]


def _with_context(function: Callable[..., Any], context: ContextOf) -> Callable[[Event], Any]:
    return lambda event: function(event, context(event))


def _raising(error: HookFailed) -> Callable[[Event], NoReturn]:
    def function(_: Event) -> NoReturn:
        raise error.with_traceback(None)  # one error for all calls: its traceback must not grow

    return function
