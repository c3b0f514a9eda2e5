"""Import, validate and activate plugins, and exit their lifespans at the end."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from ..contexts import OwnContext, PluginContext
from ..hooks import HOOK_SPECS, Failure, HookError, HookRegistry, Phase
from ._absent_guards import AbsentGuard
from ._configuration import config_model, validate_config
from ._errors import (
    LifespanFailed,
    PluginError,
    PluginHostClosed,
    PluginIncompatible,
    PluginInvalid,
    PluginMisconfigured,
)
from ._importing import Import
from ._kinds import KINDS
from ._lifespan import Lifespan
from ._objects import describe
from ._once import Once
from ._plugin import LoadedPlugin, Plugin
from ._policy import PluginPolicy
from ._records import PluginRecord, State
from ._registration import declared_backends, read_contribution

ContextFactory = Callable[[PluginRecord, Any], OwnContext]
"""Creates the context of a plugin from its record and validated configuration. The loader sets its ``state``."""

_OpenLifespan = Callable[[PluginContext], AbstractAsyncContextManager[Any]] | None
Checked = tuple[Any, Any, _OpenLifespan]
"""The contribution of a plugin, its configuration and its ``lifespan``."""
# A guard that cannot be used denies, whereas any other plugin that cannot be used is skipped.
_RESERVED = tuple(name for name, spec in HOOK_SPECS.items() if spec.on_failure is Failure.DENY)
_PHASES = {"guard": Phase.GUARD, "hook": Phase.NORMAL}


@define(eq=False)
class _Shared:
    """The configuration, context and lifespan that all plugins of one module and name share."""

    config: Any
    context: OwnContext
    lifespan: Lifespan | None
    entered: Once[None] | None = None
    failure: LifespanFailed | None = None
    users: list[PluginRecord] = field(factory=list)
    is_replaced: bool = False


@define(eq=False, repr=False)
class PluginLoader:
    """Imports, validates and activates the plugins of one plugin host.

    Args:
        policy: the policy, which contains the configuration of plugins.
        hooks: the registry for hooks and guards.
        context_factory: creates contexts.
        import_seconds: the timeout of an import.
        lifespan_seconds: the timeout of entering, and of exiting, a lifespan.
        without_lifespan: the kinds of plugins whose lifespans are not entered.
    """

    _policy: PluginPolicy
    _hooks: HookRegistry
    _context_factory: ContextFactory
    import_seconds: float = field(kw_only=True)
    _lifespan_seconds: float = field(kw_only=True)
    _without_lifespan: Container[str] = field(default=(), kw_only=True)
    _shared: dict[tuple[str, int], _Shared] = field(factory=dict, init=False)
    _entered: list[Lifespan] = field(factory=list, init=False)

    async def examine(self, record: PluginRecord, inline: Plugin | None, *, alone: bool) -> LoadedPlugin:
        """Import and validate a plugin, without entering its lifespan or registering its hooks.

        Args:
            record: the plugin.
            inline: the plugin object, if it was passed as one.
            alone: whether no other plugin has this name, so that a configuration table of this name belongs to it.

        Raises:
            PluginError: if the plugin is unusable; the record states the reason.
        """
        backend = current_backend()
        importing = Import(record) if inline is None else Import(record, inline.value, is_done=True)
        try:
            try:
                validate = partial(self.validate, record, backend, alone=alone)
                checked = await importing.and_check(validate, seconds=self.import_seconds)
            finally:
                if importing.is_done:
                    record.move(State.IMPORTED)
        except PluginMisconfigured as error:
            record.move(State.FAILED, error.reason, decided_by=error.source or "configuration")
            raise
        except PluginError as error:
            record.move(State.FAILED, error.reason)
            raise
        if isinstance(checked, str):
            record.move(State.INCOMPATIBLE, checked)
            raise PluginIncompatible(record)
        record.move(State.VALIDATED)
        return self.loaded(record, importing.value, checked)

    def loaded(self, record: PluginRecord, value: Any, checked: Checked) -> LoadedPlugin:
        """Return the plugin with the context that it shares with all plugins of its module and name.

        Args:
            record: the plugin.
            value: its object.
            checked: the result of ``validate``.
        """
        contribution, config, lifespan = checked
        shared = self._share(record, value, config, lifespan)
        return LoadedPlugin(record, value, contribution, shared.config, shared.context)

    async def activate(self, plugin: LoadedPlugin, loads: TaskGroup, owners: TaskGroup) -> None:
        """Enter the plugin's lifespan, register its hooks, and mark it as active.

        Args:
            plugin: the result of ``examine``.
            loads: the task group for loading, which several callers may wait for.
            owners: the task group for tasks that hold lifespans open.

        Raises:
            PluginError: if its lifespan could not be entered, or its hook implementations are invalid.
        """
        try:
            await self.enter(plugin, loads, owners)
            self._register(plugin)
        except PluginError as error:
            plugin.record.move(State.FAILED, error.reason)
            await self.discard(plugin)
            raise
        plugin.record.move(State.ACTIVE)

    async def enter(self, plugin: LoadedPlugin, loads: TaskGroup, owners: TaskGroup) -> None:
        """Enter the plugin's lifespan, unless another plugin that shares it has entered it. See ``activate``."""
        shared = self._shared[plugin.record.name, id(plugin.value)]
        shared.users.append(plugin.record)
        await self._enter(plugin.record, shared, loads, owners)

    async def discard(self, plugin: LoadedPlugin) -> None:
        """Exit the lifespan of a plugin that could not be activated, if no other plugin uses it."""
        shared = self._shared[plugin.record.name, id(plugin.value)]
        if plugin.record in shared.users:
            shared.users.remove(plugin.record)
        await self._exit_unused(shared)

    def forget(self, plugins: Iterable[LoadedPlugin], *, replaced: bool) -> tuple[Lifespan, ...]:
        """Forget plugins that are not used anymore, or only by calls that still run.

        Args:
            plugins: the plugins.
            replaced: whether others have replaced them, which keep their names.

        Returns:
            Their lifespans that are still entered.
        """
        lifespans: list[Lifespan] = []
        for plugin in plugins:
            shared = self._shared.pop((plugin.record.name, id(plugin.value)), None)
            if shared is not None:
                shared.is_replaced = replaced
                if shared.lifespan in self._entered:
                    lifespans.append(shared.lifespan)
        return tuple(lifespans)

    async def exit(self, lifespan: Lifespan) -> LifespanFailed | None:
        """Exit the lifespan of a plugin that was replaced, and return its failure."""
        if lifespan not in self._entered:
            return None
        with anyio.CancelScope(shield=True):
            self._entered.remove(lifespan)
            try:
                await lifespan.exit(seconds=self._lifespan_seconds)
            except LifespanFailed as error:
                return error
        return None

    async def exit_all(self) -> list[LifespanFailed]:
        """Exit all lifespans in reverse order, even if some fail, and return the failures."""
        failures = []
        while self._entered:
            lifespan = self._entered.pop()
            try:
                await lifespan.exit(seconds=self._lifespan_seconds)
            except LifespanFailed as error:
                lifespan.record.move(State.FAILED, error.reason)
                failures.append(error)
        return failures

    def failure(self, plugin: LoadedPlugin) -> LifespanFailed | None:
        """Return why a plugin is no longer active, or ``None`` if it is active."""
        shared = self._shared.get((plugin.record.name, id(plugin.value)))
        return None if shared is None else shared.failure

    def validate(self, record: PluginRecord, backend: str, value: Any, *, alone: bool) -> Checked | str:
        """Run all code of the plugin that is needed to validate it, in a thread.

        Returns:
            Its contribution, its configuration and its ``lifespan``; or why it does not support this event loop.
        """
        backends = declared_backends(record, value)
        if backend not in backends:
            return f"it supports {' and '.join(backends)}, but the host runs on {backend}"
        config = self._config(record, value, alone=alone)
        return read_contribution(record, value, config), config, getattr(value, "lifespan", None)

    def _config(self, record: PluginRecord, value: Any, *, alone: bool) -> Any:
        table = self._policy.config.get(record.name, {})
        model = config_model(record, value)
        if model is not None:
            return validate_config(record, model, table, self._policy.config_source)
        if table and alone:
            source = self._policy.config_source.get(record.name, "")
            problem = "the plugin does not accept any configuration"
            raise PluginMisconfigured(record, f"plugins.{record.name}", problem, source=source)
        return None

    def _share(self, record: PluginRecord, value: Any, config: Any, lifespan: _OpenLifespan) -> _Shared:
        key = (record.name, id(value))
        if (found := self._shared.get(key)) is not None:
            return found
        shared = _Shared(config, self._context_factory(record, config), None)
        if lifespan is not None:
            shared.lifespan = Lifespan(record, lifespan, shared.context, partial(self._end, shared))
        self._shared[key] = shared
        return shared

    async def _enter(self, record: PluginRecord, shared: _Shared, loads: TaskGroup, owners: TaskGroup) -> None:
        lifespan = shared.lifespan
        if lifespan is None or record.kind in self._without_lifespan:
            return

        async def enter() -> None:
            await lifespan.enter(owners, seconds=self._lifespan_seconds)
            self._entered.append(lifespan)
            await self._exit_unused(shared)  # if the reload that needed it was cancelled

        if shared.entered is None:
            shared.entered = Once(enter, abandoned=PluginHostClosed(record.kind, record.name))
        await shared.entered.get(loads)
        if shared.failure is not None:
            raise shared.failure

    async def _exit_unused(self, shared: _Shared) -> None:
        """Exit a lifespan if the only plugin that used it failed to activate."""
        if shared.lifespan in self._entered and not shared.users:
            self._entered.remove(shared.lifespan)
            with anyio.CancelScope(shield=True):
                try:
                    await shared.lifespan.exit(seconds=self._lifespan_seconds)
                except LifespanFailed as error:
                    shared.failure = error

    def _register(self, plugin: LoadedPlugin) -> None:
        if (phase := phase_of(plugin.record)) is None:
            return
        implementation, make = self.implementation(plugin)
        try:
            self._hooks.register(
                plugin.name,
                implementation,
                phase=phase,
                context=plugin.context,
                make=make,
                package=plugin.record.package,
            )
        except HookError as error:
            raise PluginInvalid(plugin.record, error.message) from error
        if phase is not Phase.GUARD:
            self._check_reserved(plugin)

    def implementation(self, plugin: LoadedPlugin) -> tuple[Any, Callable[[], object] | None]:
        """Return the object with the hooks of a plugin; for a guard, an instance and the class.

        Raises:
            PluginInvalid: if the guard cannot be instantiated.
        """
        implementation, make = plugin.contribution, None
        if isinstance(implementation, type):
            make = implementation
            try:
                implementation = implementation()
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt | anyio.get_cancelled_exc_class()):
                    raise  # may be the user's
                problem = f"`{plugin.contribution.__name__}()` raised {describe(error)}"
                raise PluginInvalid(plugin.record, problem) from error
        return implementation, make

    def _check_reserved(self, plugin: LoadedPlugin) -> None:
        """Replace the hooks of a plugin that is not a guard, but decides like one.

        Raises:
            PluginInvalid: if it was replaced.
        """
        try:
            check_reserved(self._hooks, plugin)
        except PluginInvalid:
            self._hooks.unregister(plugin.name)
            # Don't only refuse it: what it was meant to deny would be allowed.
            self._hooks.register(plugin.name, AbsentGuard(plugin.record), phase=Phase.GUARD)
            raise

    def _end(self, shared: _Shared, error: LifespanFailed) -> None:
        """Mark all plugins that use a lifespan as failed, because it ended while the host was running."""
        shared.failure = error
        for record in shared.users:
            if shared.is_replaced:
                self._hooks.break_off_replaced(record.name, error.reason)
                continue
            record.move(State.FAILED, error.reason)
            if record.kind in _PHASES:
                # Don't unregister it: without the guard, everything would be allowed.
                self._hooks.break_off(record.name, error.reason)


def current_backend() -> str:
    """Return the name of the event loop's library."""
    return anyio.get_cancelled_exc_class().__module__.partition(".")[0]


def phase_of(record: PluginRecord) -> Phase | None:
    """Return the phase of the plugin's hooks, or ``None`` for a kind without hooks."""
    return _PHASES.get(record.kind)


def check_reserved(hooks: HookRegistry, plugin: LoadedPlugin) -> None:
    """Check that a registered plugin that is not a guard does not decide like one.

    Raises:
        PluginInvalid: if it does.
    """
    for hook in _RESERVED:
        if hooks.implements(plugin.name, hook):
            record = plugin.record
            group = f"in the entry-point group `{KINDS['guard'].group}`"
            where = f"as `guard.{record.name}` under [policy.files]" if record.file else group
            problem = f"`{hook}` is reserved for guards; move it to a class, and declare that class {where}"
            raise PluginInvalid(record, problem)
