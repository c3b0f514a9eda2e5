"""The plugin host, which discovers plugins, decides which are usable, and loads them when they are needed."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Container, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync

from ..hooks import HookRegistry, Phase
from ..loading import SkillPackage
from ._absent_guards import AbsentGuard, is_absent_guard
from ._bare_context import BareContext
from ._discovery import rivals, survey
from ._entry_point import Installed
from ._errors import (
    GuardMissing,
    PluginConflict,
    PluginDenied,
    PluginError,
    PluginHostClosed,
    PluginInvalid,
    PluginNotFound,
    StrictPluginError,
    described,
    unusable,
)
from ._exits import enter
from ._kinds import KINDS, When
from ._last_start import write_last_start
from ._loader import ContextFactory, PluginLoader
from ._loads import OnLoad, PluginLoad, ignore_load
from ._metadata import read_installed
from ._once import Once
from ._plugin import LoadedPlugin, Plugin
from ._policy import PluginPolicy
from ._records import PluginRecord, State
from ._skills import locate_skill
from ._table import Loadable, PluginTable, open_tables

if TYPE_CHECKING:
    from ..contexts._editions import Edition
    from ._reload import Reloads

__all__ = ["PluginHost"]

_log = logging.getLogger("sideband.plugins")
T = TypeVar("T")


class PluginHost:
    """The plugins of one host. A process can have several plugin hosts, which share no state.

    Use it with ``async with``: entering it discovers all plugins, decides by metadata and policy which are usable,
    and loads guards and hooks; exiting it exits the lifespans in reverse order. An unusable plugin is not an error at
    startup: its record states the reason, and requesting the plugin raises its error.

    Args:
        policy: the policy about plugins, and their configuration.
        home: the state folder; its ``cache`` contains the index of installed plugins.
        inline: plugins passed as objects.
        autoload: whether to discover installed plugins.
        context_factory: creates the context of each plugin from its record and configuration; by default, plugins get
            a context that cannot cause effects.
        hooks: the registry for hooks and guards; by default a new one.
        import_seconds: the timeout of an import.
        lifespan_seconds: the timeout of entering, and of exiting, a lifespan.
        on_load: called before the code of a plugin is imported, and when a load has failed.
        load_at_start: whether to load guards and hooks when the host is entered; if false, nothing is imported until
            it is requested, or until ``start``.
        without_lifespan: the kinds of plugins whose lifespans are not entered.

    Attributes:
        before_swap: called during a reload with a registry that has only the hooks of the candidates, before they
            replace others.
        after_swap: called, without waiting, with the edition of plugins that a reload has replaced.

    Example:
        >>> async def main(home):
        ...     async with PluginHost(PluginPolicy(deny={"op.shell": "not here"}), home=home) as plugins:
        ...         http = await plugins.load("op", "http")
        ...         return [spec.name for spec in http.contribution.ops]
    """

    def __init__(
        self,
        policy: PluginPolicy | None = None,
        *,
        home: Path,
        inline: Iterable[Plugin] = (),
        autoload: bool = True,
        context_factory: ContextFactory | None = None,
        hooks: HookRegistry | None = None,
        import_seconds: float = 60.0,
        lifespan_seconds: float = 30.0,
        on_load: OnLoad = ignore_load,
        load_at_start: bool = True,
        without_lifespan: Container[str] = (),
    ) -> None:
        self.policy = policy if policy is not None else PluginPolicy()
        self.hooks = hooks if hooks is not None else HookRegistry(order=self.policy.order)
        self._home = home
        self._inline = tuple(inline)
        self._autoload = autoload
        self._load_eagerly = load_at_start
        self._on_load = on_load
        self._loader = PluginLoader(
            self.policy,
            self.hooks,
            context_factory if context_factory is not None else self._bare_context,
            import_seconds=import_seconds,
            lifespan_seconds=lifespan_seconds,
            without_lifespan=without_lifespan,
        )
        self._inline_values: dict[PluginRecord, Plugin] = {}
        self._table = PluginTable(self._slot)
        self._problems: list[str] = []
        self.before_swap: Callable[[HookRegistry], Awaitable[None]] | None = None
        self.after_swap: Callable[[Edition], None] | None = None
        self._reloads: Reloads | None = None
        self._stack: AsyncExitStack | None = None
        self._loads: TaskGroup | None = None
        self._owners: TaskGroup | None = None

    async def __aenter__(self) -> Self:
        if self._stack is not None or self._table.records:
            raise RuntimeError("a PluginHost can be entered only once; create another one")
        self._stack = stack = AsyncExitStack()
        open_tables.add(self._table)
        stack.callback(open_tables.discard, self._table)
        self._owners = await enter(stack, anyio.create_task_group())
        stack.push_async_callback(self._exit_lifespans)
        self._loads = await enter(stack, anyio.create_task_group())
        stack.callback(self._loads.cancel_scope.cancel)
        try:
            await self._discover()
            self._check_guards(lambda record: record.state.usable)
            if self._load_eagerly:
                await self.start()
            else:
                self.check_strict()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def start(self) -> None:
        """Load guards and hooks.

        Raises:
            GuardMissing: if a guard that the policy requires is not active.
            StrictPluginError: if the policy is strict, and a plugin is unusable.
        """
        await self._load_at_start()
        self._check_guards(lambda record: record.state is State.ACTIVE)
        loaded = [one.record for one in self._table.slots.values() if one.record.state is not State.FOUND]
        await run_sync(write_last_start, self._home, loaded)
        self.check_strict()

    @property
    def records(self) -> tuple[PluginRecord, ...]:
        """All plugins, usable or not, sorted by kind and name."""
        return self._table.records

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems that belong to no record: unreadable metadata, and configuration of unknown plugins."""
        return tuple(self._problems)

    def names(self, kind: str, *, broken: bool = False) -> tuple[str, ...]:
        """Return the sorted names of all plugins of a kind that are not known to be unusable. Imports nothing.

        Args:
            kind: the kind.
            broken: whether to include plugins that failed, conflict or are incompatible, so that the caller reports
                the error of ``load``.
        """
        return self._table.names(kind, broken=broken)

    def active(self, kind: str, name: str) -> LoadedPlugin | None:
        """Return a plugin if it is active, without loading it."""
        return self._table.active(kind, name)

    def why(self, name: str, *, kind: str | None = None) -> tuple[PluginRecord, ...]:
        """Return the records of all plugins of that name, whose ``trail`` explains the state of each.

        Raises:
            PluginNotFound: if there is no such plugin.
        """
        return self._table.named(name, kind)

    async def load(self, kind: str, name: str, *, activate: bool = True) -> LoadedPlugin:
        """Import, validate and activate a plugin, unless it is already active. Concurrent calls share one load.

        Args:
            kind: the kind of plugin, such as ``op`` or ``provider``.
            name: the entry-point name.
            activate: whether to enter its lifespan and register its hooks; if false, it is only imported and
                validated.

        Raises:
            PluginNotFound: if the plugin is not installed.
            PluginConflict: if several distributions provide it.
            PluginDenied: if the policy does not allow it.
            PluginIncompatible: if it does not support this core or this event loop.
            PluginImportFailed: if its import raised.
            PluginInvalid: if it does not match the interface of its kind, or its hook implementations are invalid.
            PluginMisconfigured: if its configuration is invalid.
            LifespanFailed: if its lifespan raised, timed out, or ended.
        """
        slot = self._table.slots.get((kind, name))
        if slot is not None and slot.active is not None and slot.record.state is State.ACTIVE:
            return slot.active
        if self._loads is None:
            raise PluginHostClosed(kind, name)
        if slot is None:
            raise self._refusal(kind, name)
        if not activate:
            return await slot.examined.get(self._loads)
        loaded = await slot.activated.get(self._loads)
        if (reloaded := self._table.active(kind, name)) is not None:
            return reloaded  # maybe meanwhile
        if (failure := self._loader.failure(loaded)) is not None:
            raise failure
        return loaded

    async def ensure_family(self, family: str) -> LoadedPlugin:
        """Return the active plugin of an op family, whose ``contribution`` is an ``OpFamily``. See ``load``."""
        return await self.load("op", family)

    def locate_skills(self) -> tuple[SkillPackage, ...]:
        """Return the folders of skills installed as packages. If one is missing, its record states the reason."""
        records = [record for record in self._table.records if record.kind == "skill" and record.state.usable]
        located = [locate_skill(record) for record in records]
        return tuple(package for package in located if package is not None)

    async def reload(self, name: str, *, kind: str | None = None) -> tuple[PluginRecord, ...]:
        """Import a plugin again, and all others of its distribution that are loaded, and replace the running ones.

        The metadata is read again, so the version may be another one. The configuration is not. The candidates are
        imported and validated beside the running plugins, and their lifespans are entered. Then they replace the
        others in one step: calls, hooks and runs in progress finish with the old plugins, whose lifespans are exited
        after the last of these has ended, and those that begin now use the new ones.

        Args:
            name: the entry-point name.
            kind: the kind, if plugins of several distributions have this name.

        Returns:
            The records of the new plugins.

        Raises:
            PluginNotFound: if there is no such plugin.
            PluginDenied: if the policy does not allow it.
            PluginReloadRefused: if it would not be safe. Nothing has changed.
            PluginReloadFailed: if a candidate is unusable. Nothing has changed.
        """
        if self._loads is None or self._owners is None:
            raise PluginHostClosed(kind or "plugin", name)
        if self._reloads is None:
            from ._reload import Reloads

            self._reloads = Reloads(self._table, self._loader, self.policy, self.hooks, self._survey, self._on_load)
        self._reloads.before_swap, self._reloads.after_swap = self.before_swap, self.after_swap
        return await self._reloads.reload(name, kind, self._loads, self._owners)

    async def _survey(self) -> tuple[tuple[PluginRecord, ...], tuple[str, ...]]:
        """Return new records of all plugins, and the problems that belong to none of them."""
        inline = {
            PluginRecord(plugin.kind, plugin.name, distribution=plugin.distribution, version=plugin.version): plugin
            for plugin in self._inline
        }
        self._inline_values.update(inline)

        def read() -> tuple[tuple[PluginRecord, ...], tuple[str, ...]]:
            installed = read_installed(home=self._home) if self._autoload else Installed()
            return survey(installed, inline, self.policy, self._home)

        return await run_sync(read) if self._autoload or self.policy.files else read()

    async def _discover(self) -> None:
        records, problems = await self._survey()
        self._problems += problems
        for problem in self._problems:
            _log.warning("%s", problem)
        self._table.fill(records)

    def _slot(self, record: PluginRecord, alone: bool) -> Loadable:
        abandoned = PluginHostClosed(record.kind, record.name)

        async def activate() -> LoadedPlugin:
            if self._loads is None or self._owners is None:
                raise abandoned
            loaded = await slot.examined.get(self._loads)
            await self._recorded(record, self._loader.activate(loaded, self._loads, self._owners))
            slot.active = loaded
            return loaded

        async def examine() -> LoadedPlugin:
            await self._on_load(PluginLoad(record))
            return await self._recorded(
                record, self._loader.examine(record, self._inline_values.get(record), alone=alone)
            )

        slot = Loadable(record, Once(examine, abandoned=abandoned), Once(activate, abandoned=abandoned))
        return slot

    async def _recorded(self, record: PluginRecord, step: Awaitable[T]) -> T:
        try:
            return await step
        except PluginError as error:
            await self._on_load(PluginLoad(record, error=error))
            raise

    async def _load_at_start(self) -> None:
        for kind in KINDS.values():
            for name in self.names(kind.name, broken=True) if kind.when is When.START else ():
                try:
                    await self.load(kind.name, name)
                except PluginError as error:
                    _log.warning("%s; %s", error.message, error.hint)  # the record contains the reason too
        absent = {record.name: record for record in self._table.records if is_absent_guard(record)}
        for name, record in absent.items():
            self.hooks.unregister(name)
            self.hooks.register(name, AbsentGuard(record), phase=Phase.GUARD)

    def _check_guards(self, is_present: Callable[[PluginRecord], bool]) -> None:
        for name in sorted(self.policy.guards):
            records = [one for one in self._table.records if (one.kind, one.name) == ("guard", name)]
            if not any(map(is_present, records)):
                raise GuardMissing(name, next(iter(rivals(records) or records), None))

    def check_strict(self) -> None:
        """Check that a strict host has no unusable plugin, also after it has loaded some at their first use.

        Raises:
            StrictPluginError: if it has; the message names all of them.
        """
        if not self.policy.strict:
            return
        broken = [record for record in self._table.records if record.state.broken]
        problems = [f"{described(record)}: {record.reason}" for record in broken] + self._problems
        if problems:
            raise StrictPluginError(problems)

    def _refusal(self, kind: str, name: str) -> PluginError:
        """Return the error for a plugin that cannot be loaded."""
        found = [record for record in self._table.records if (record.kind, record.name) == (kind, name)]
        if not found:
            return PluginNotFound(kind, name, known=self.names(kind))
        candidates = rivals(found)
        if len(candidates) > 1:
            return PluginConflict(kind, name, candidates)
        record = candidates[0] if candidates else found[0]
        if record.state is State.DENIED:
            return PluginDenied(record)
        if record.state is State.INCOMPATIBLE or record.file or record.decided_by == "lock":
            return unusable(record)
        return PluginInvalid(record, "a skill cannot be loaded as a plugin")

    def _bare_context(self, record: PluginRecord, config: Any) -> BareContext:
        return BareContext(plugin=record.name, config=config, home=self._home)

    async def _exit_lifespans(self) -> None:
        with anyio.CancelScope(shield=True):
            for failure in await self._loader.exit_all():
                self._problems.append(failure.message)
                _log.warning("%s", failure.message)
        if self._reloads is not None:
            self._reloads.forget_modules()

    async def _close(self) -> None:
        stack, self._stack, self._loads = self._stack, None, None
        if stack is not None:
            # Don't pass the body's error: a task group would wrap it, and callers expect it unwrapped.
            await stack.aclose()
