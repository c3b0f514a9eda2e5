"""The registry of hook implementations, by plugin and in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from types import MemberDescriptorType
from typing import Any, NoReturn
from weakref import WeakKeyDictionary, WeakSet, ref

import pluggy
from attrs import evolve, frozen

from ..approvals import Approver
from ..contexts import PluginContext, SessionEnds
from ..errors import safe_text
from ._dispatch import Hooks
from ._errors import HookFailed, HookInvalid, HookNotFound, HookOrderCycle
from ._event import Event
from ._folds import CallFold
from ._implementations import Implementation, bundle
from ._order import PROJECT, Constraints, OrderedImplementation, Phase, constraints_of, solve
from ._registrations import ContextOf, Registration, Registrations
from ._reports import Report, log_report
from ._spec import HOOK_SPECS, PLUGGY_SPECS

AgentContextOf = Callable[[PluginContext | None], PluginContext | None]


class HookRegistry(Hooks):
    """The hooks of one host: registers implementations and dispatches events to them.

    Args:
        report: called with each failure and, if ``trace`` is set, with each call; by default, failures are logged.
        trace: whether to report successful calls too.
        deadlines: deadlines in seconds, by hook, which override those of the specs.
        order: the configured order of plugins, by hook.

    Attributes:
        approver: answers requests for approval of the calls with these hooks; ``None`` for the approver of the host.
        session_ends: closes what belongs to the sessions of the agent; ``None`` without an agent.

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
        self.approver: Approver | None = None
        self.session_ends: SessionEnds | None = None
        for hook in order or ():
            if hook not in HOOK_SPECS:
                raise HookNotFound(hook, known=HOOK_SPECS)
        self._manifest = {hook: tuple(plugins) for hook, plugins in (order or {}).items()}
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(PLUGGY_SPECS)
        self._registered = Registrations(self._manifest)
        self._is_shared = False
        self._implementations = self._registered.solved
        self._constrained: frozenset[str] = frozenset()
        self._checked: WeakKeyDictionary[type, Mapping[str, _Checked]] = WeakKeyDictionary()
        self._derived: WeakSet[HookRegistry] = WeakSet()
        self._pins = 0
        self._waiting: dict[str, Registration] = {}

    @property
    def plugins(self) -> tuple[str, ...]:
        """The names of the registered plugins, sorted."""
        return tuple(sorted(self._registered.plugins))

    def register(
        self,
        plugin: str,
        implementation: object,
        *,
        phase: Phase = Phase.NORMAL,
        context: PluginContext | ContextOf | None = None,
        make: Callable[[], object] | None = None,
        package: str = "",
    ) -> None:
        """Register the hook implementations of a plugin. If one is invalid, nothing is registered.

        Args:
            plugin: the entry-point name.
            implementation: a module, or an instance of a class, with functions marked by ``hookimpl``.
            phase: ``GUARD`` for guards; ``OBSERVER`` for plugins that run last, to see the changes of all others.
            context: the ``ctx`` of its implementations, or a function that returns it for an event.
            make: a factory of instances like ``implementation``, if each agent needs its own.
            package: the distribution and version of the plugin, such as ``sideband-http 1.2``, for messages.

        Raises:
            HookInvalid: if an implementation is invalid; the error lists all problems.
            HookOrderCycle: if its ordering constraints form a cycle with those of registered plugins.
        """
        if plugin in self._registered.plugins:
            raise HookInvalid(plugin, ["it is already registered"])
        added = self.checked(plugin, implementation, phase=phase, context=context, make=make, package=package)
        own = self._own()
        own.add(plugin, added)
        named = _named(added)
        if named or plugin in self._constrained:
            # Only these can complete a cycle. All others are sorted when the hook is first dispatched.
            try:
                self._constrained |= named
                for hook in added.functions:
                    own.order(hook, phase)
            except HookOrderCycle as error:
                own.remove(plugin)
                error.plugin = plugin
                raise

    def checked(
        self,
        plugin: str,
        implementation: object,
        *,
        phase: Phase = Phase.NORMAL,
        context: PluginContext | ContextOf | None = None,
        make: Callable[[], object] | None = None,
        package: str = "",
    ) -> Registration:
        """Return the registration of a plugin without registering it. See ``register``."""
        context_of = context if callable(context) else lambda _: context
        functions = self._functions(plugin, implementation, phase, context_of, package)
        return Registration(functions, phase, context_of, make, package)

    def check_order(self, new: Mapping[str, Registration]) -> None:
        """Check that plugins can be replaced, here and in the derived registries.

        Raises:
            HookOrderCycle: if the ordering constraints would form a cycle.
        """
        trial = self._registered.copy()
        for plugin, registration in new.items():
            trial.put(plugin, registration)
        for plugin, registration in new.items():
            try:
                for hook in registration.functions:
                    trial.order(hook, registration.phase)
            except HookOrderCycle as error:
                error.plugin = plugin
                raise
        for derived in self._derived:
            derived.check_order(new)

    def replace(self, new: Mapping[str, Registration]) -> None:
        """Register plugins, each instead of one with its name, in one step, which no event can come between.

        A dispatch that runs still calls those that it began with. So do derived registries that are pinned.

        Args:
            new: the registrations by plugin, from ``checked``, for which ``check_order`` raised nothing.
        """
        added = new.keys() - self._registered.plugins.keys()
        for plugin, registration in new.items():
            self._put(plugin, registration)
        for derived in self._derived:
            for plugin, registration in new.items():
                # An agent may have a guard of its own with the name of a plugin that the host did not have.
                if plugin not in added or plugin not in derived.plugins:
                    derived.adopt(plugin, registration)

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Keep the plugins of a derived registry as they are for a block, such as a run of an agent.

        What was replaced meanwhile is adopted at its end. Until then, its lifespan stays entered.
        """
        with self.editions.held():
            self._pins += 1
            try:
                yield
            finally:
                self._pins -= 1
                if not self._pins:
                    waiting, self._waiting = self._waiting, {}
                    for plugin, registration in waiting.items():
                        self.adopt(plugin, registration)

    def adopt(self, plugin: str, shared: Registration) -> None:
        """Replace a plugin of a derived registry by that of its origin, now or as soon as it is not pinned."""
        if self._pins:
            self._waiting[plugin] = shared
        else:
            self._put(plugin, shared if shared.make is None else self._made_again(plugin, shared, shared.make))

    def _put(self, plugin: str, registration: Registration) -> None:
        self._own().put(plugin, registration)
        self._constrained |= _named(registration)

    def unregister(self, plugin: str) -> None:
        """Remove all implementations of a plugin; do nothing if it is not registered.

        A running dispatch still calls it.
        """
        self._waiting.pop(plugin, None)
        if plugin not in self._registered.plugins:
            return
        self._own().remove(plugin)
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
        if plugin in self._waiting:  # what is registered is another one, which it was to replace
            self._waiting[plugin] = _broken(plugin, self._waiting[plugin], reason)
        elif plugin in self._registered.plugins:
            self._own().replace(plugin, _broken(plugin, self._registered.plugins[plugin], reason))
        else:
            return
        for derived in self._derived:
            derived.break_off(plugin, reason)

    def break_off_replaced(self, plugin: str, reason: str) -> None:
        """Do the same for a plugin that was replaced, in the registries that are pinned and still call it."""
        if plugin in self._waiting:
            self._own().replace(plugin, _broken(plugin, self._registered.plugins[plugin], reason))
        for derived in self._derived:
            derived.break_off_replaced(plugin, reason)

    def derive(self, context: AgentContextOf) -> HookRegistry:
        """Return a registry with the same plugins for an agent, which gets its own contexts and guards.

        Plugins registered with ``make``, such as guards, are instantiated again; all others are shared. Plugins that
        are unregistered or broken off here are so in the derived registry too.

        Args:
            context: returns the agent's context for a context with which a plugin is registered.
        """
        derived: HookRegistry = copy(self)
        derived._adapted = context
        derived._derived = WeakSet()
        derived._pins, derived._waiting = 0, {}
        derived._is_shared = self._is_shared = True
        for plugin, shared in self._registered.plugins.items():
            if shared.make is not None:
                derived._own().replace(plugin, derived._made_again(plugin, shared, shared.make))
        self._derived.add(derived)
        return derived

    def _made_again(self, plugin: str, shared: Registration, make: Callable[[], object]) -> Registration:
        """Return the registration of a new instance, which fails if it cannot be made."""
        try:
            instance = make()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise  # may be the user's
            # A guard that cannot be created denies, like one that fails. A reload must not stop halfway.
            return _broken(plugin, shared, f"it cannot be created: {type(error).__name__}: {safe_text(error)}")
        functions = self._functions(plugin, instance, shared.phase, shared.context, shared.package)
        return evolve(shared, functions=functions)

    def context_of(self, plugin: str, event: Event) -> PluginContext | None:
        """Return the ``ctx`` of a plugin's implementations for an event, for callbacks that the plugin registered.

        Raises:
            KeyError: if the plugin is not registered.
        """
        return self._adapted(self._registered.plugins[plugin].context(event))

    async def call(self, event: Event, plugin: str, function: Callable[..., Any], *, seconds: float) -> Any:
        """Call a function that a plugin returned for an event, such as the handler of a route, like an implementation.

        Args:
            event: the event.
            plugin: the entry-point name of the plugin.
            function: takes the event and the ``ctx`` of the plugin's implementations; may be async.
            seconds: its deadline.

        Returns:
            What the function returns.

        Raises:
            HookFailed: if it fails. This is reported, like the failure of an implementation.
            HookTimeout: if it exceeds the deadline; reported too.
            KeyError: if the plugin is not registered.
        """
        owner = self._registered.plugins[plugin]
        one = Implementation(plugin, Phase.NORMAL, Constraints(), function, owner.context, owner.package)
        fold = CallFold(HOOK_SPECS[event.hook], [one], event)
        await self._drive(fold, seconds)
        if fold.error is not None:
            raise fold.error
        return fold.outcome

    def order(self, hook: str) -> tuple[OrderedImplementation, ...]:
        """Return the implementations of a hook in the order in which they run, with the reasons for their positions.

        Raises:
            HookNotFound: if the hook is unknown.
        """
        if hook not in HOOK_SPECS:
            raise HookNotFound(hook, known=HOOK_SPECS)
        return solve(hook, self._implementations[hook], self._manifest.get(hook, ()))

    def implements(self, plugin: str, hook: str) -> bool:
        """Return whether a plugin is registered and implements a hook."""
        found = self._registered.plugins.get(plugin)
        return found is not None and hook in found.functions

    def _own(self) -> Registrations:
        """Return the plugins for a change, which must not change those of others that share them."""
        if self._is_shared:
            self._registered = self._registered.copy()
            self._implementations = self._registered.solved
            self._is_shared = False
        return self._registered

    def _functions(
        self, plugin: str, implementation: object, phase: Phase, context: ContextOf, package: str
    ) -> Mapping[str, Implementation]:
        """Return the implementations of a plugin by hook. A class is checked once, and not for each instance."""
        checked = {} if _has_own(implementation) else self._checked.get(type(implementation), {})
        functions: dict[str, Any] = {hook: getattr(implementation, hook, False) for hook in checked}
        # Not `_unbound`: each agent with a listener would call it for each hook.
        if not checked or any(
            getattr(functions[hook], "__func__", functions[hook]) is not one.function() for hook, one in checked.items()
        ):
            checked = self._check(plugin, implementation)
            functions = {hook: getattr(implementation, hook) for hook in checked}
            self._checked[type(implementation)] = checked
        return {
            hook: Implementation(
                plugin, phase, one.constraints, functions[hook], context if one.takes_context else None, package
            )
            for hook, one in checked.items()
        }

    def _check(self, plugin: str, implementation: object) -> Mapping[str, _Checked]:
        """Return the functions of a plugin by hook, which pluggy has checked."""
        namespace = bundle(plugin, implementation, HOOK_SPECS)
        try:
            self._manager.register(namespace, plugin)
            callers = self._manager.get_hookcallers(namespace) or ()
            return {one.name: _checked(one.get_hookimpls()[0]) for one in callers}
        except pluggy.PluginValidationError as error:
            raise HookInvalid(plugin, [str(error)]) from error
        finally:
            self._manager.unregister(namespace)


@frozen
class _Checked:
    """A function, not bound to an instance, that was found to be a valid implementation. It does not keep its class."""

    function: Callable[[], object]
    constraints: Constraints
    takes_context: bool


def _checked(one: pluggy.HookImpl) -> _Checked:
    constraints = constraints_of(one.function)
    assert constraints is not None  # noqa: S101  `bundle` rejects functions without a mark
    return _Checked(ref(_unbound(one.function)), constraints, "ctx" in (*one.argnames, *one.kwargnames))


def _named(one: Registration) -> frozenset[str]:
    """Return the plugins that the ordering constraints of a plugin name."""
    constraints = [function.constraints for function in one.functions.values()]
    return frozenset(name for each in constraints for name in (*each.before, *each.after))


def _has_own(implementation: object) -> bool:
    """Return whether a module or an instance has functions that its class does not have, maybe in slots."""
    if not HOOK_SPECS.keys().isdisjoint(getattr(implementation, "__dict__", ())):
        return True
    kind = type(implementation)
    return hasattr(kind, "__slots__") and MemberDescriptorType in [
        type(getattr(kind, hook, None)) for hook in HOOK_SPECS
    ]


def _unbound(function: object) -> object:
    return getattr(function, "__func__", function)


def _broken(plugin: str, one: Registration, reason: str) -> Registration:
    """Return the registration of a plugin whose calls fail."""
    functions = {
        hook: evolve(function, function=_raising(HookFailed(hook, plugin, reason, package=one.package)), context=None)
        for hook, function in one.functions.items()
    }
    return evolve(one, functions=functions, make=None)


def _raising(error: HookFailed) -> Callable[[Event], NoReturn]:
    def function(_: Event) -> NoReturn:
        raise error.with_traceback(None)  # all calls raise the same error, so its traceback must not grow

    return function
