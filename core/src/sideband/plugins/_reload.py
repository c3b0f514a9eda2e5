"""Reload plugins: import candidates beside the running plugins, and replace these in one step."""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial

import anyio
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync
from attrs import define, field, frozen

from ..contexts._editions import Edition
from ..hooks import HookError, HookRegistry, Phase
from ..hooks._registrations import Registration
from ._errors import (
    PluginDenied,
    PluginError,
    PluginHostClosed,
    PluginInvalid,
    PluginReloadFailed,
    PluginReloadRefused,
)
from ._import_turns import ModulesBusy
from ._importing import Import, contained
from ._kinds import KINDS, When
from ._lifespan import Lifespan
from ._loader import Checked, PluginLoader, check_reserved, current_backend, phase_of
from ._loads import OnLoad, PluginLoad
from ._modules import ExtensionFound, ModuleSet, SecondImport
from ._objects import module_of
from ._plugin import LoadedPlugin
from ._policy import PluginPolicy
from ._records import PluginRecord, State, Transition
from ._table import Loadable, PluginTable, open_tables

_log = logging.getLogger("sideband.plugins")

_IN_USE = {
    "store": "its store is in use for all of the host",
    "sandbox": "its sandbox has launched the workers that run",
    "secrets": "its source has the secrets that the host protects",
}
_AT_START = tuple(kind.name for kind in KINDS.values() if kind.when is When.START)
_MAX_TRAIL = 20


Survey = Callable[[], Awaitable[tuple[tuple[PluginRecord, ...], tuple[str, ...]]]]
"""Makes new records of all plugins, and returns the problems that belong to none of them too."""


@frozen
class _Candidate:
    """A plugin that was imported again and validated."""

    plugin: LoadedPlugin
    replaced: PluginRecord | None


@frozen
class _Swap:
    """All that one step replaces: the records of a distribution, its loaded plugins, their hooks and modules."""

    candidates: Sequence[_Candidate]
    new: Sequence[PluginRecord]
    group: Sequence[PluginRecord]
    registrations: Mapping[str, Registration]
    importing: SecondImport


@define(eq=False)
class Reloads:
    """The reloads of one plugin host, one at a time.

    Attributes:
        before_swap: called with a registry that has only the hooks of the candidates, before they replace others.
        after_swap: called, without waiting, with the edition of plugins that was replaced.
    """

    _table: PluginTable
    _loader: PluginLoader
    _policy: PluginPolicy
    _hooks: HookRegistry
    _survey: Survey
    _on_load: OnLoad
    before_swap: Callable[[HookRegistry], Awaitable[None]] | None = None
    after_swap: Callable[[Edition], None] | None = None
    _turn: anyio.Lock = field(factory=anyio.Lock, init=False)
    _replaced: list[ModuleSet] = field(factory=list, init=False)

    def forget_modules(self) -> None:
        """Forget the modules of all plugins that were replaced. The host has exited their lifespans."""
        while self._replaced:
            self._replaced.pop().forget()

    async def reload(
        self, name: str, kind: str | None, loads: TaskGroup, owners: TaskGroup
    ) -> tuple[PluginRecord, ...]:
        """See ``PluginHost.reload``."""
        async with self._turn:
            named = self._named(name, kind)
            group = [one for one in self._table.records if one.distribution == named[0].distribution]
            for record in group:
                if (slot := self._table.slots.get((record.kind, record.name))) is not None:
                    await slot.examined.wait()
                    await slot.activated.wait()
            self._check_kinds(named[0], group)
            try:
                return await self._replace(named, group, loads, owners)
            except (PluginReloadRefused, PluginDenied):
                raise
            except PluginError as error:
                known = isinstance(error, PluginReloadFailed)
                failure = error if known else PluginReloadFailed(named[0], error.reason)
                for record in named:
                    await self._on_load(PluginLoad(record, record.version, failure))
                    record.move(record.state, failure.reason, decided_by="reload")
                    record.trail = _bounded(record.trail)
                if failure is error:
                    raise
                raise failure from error

    def _named(self, name: str, kind: str | None) -> tuple[PluginRecord, ...]:
        found = self._table.named(name, kind)
        allowed = tuple(
            one for one in found if one.state is not State.DENIED and KINDS[one.kind].when is not When.NEVER
        )
        if not allowed:
            if found[0].state is State.DENIED:
                raise PluginDenied(found[0])
            hint = "reload the agent, which finds its skills again"
            raise PluginReloadRefused(found[0], "a skill is not loaded as a plugin", hint=hint)
        if len({one.distribution for one in allowed}) > 1:
            labels = ", ".join(f"`{one.label}`" for one in allowed)
            raise PluginReloadRefused(allowed[0], "several distributions have this name", hint=f"name one: {labels}")
        return allowed

    def _check_kinds(self, named: PluginRecord, group: Sequence[PluginRecord]) -> None:
        """Check what is known without reading anything.

        Raises:
            PluginReloadRefused: if the plugins must not be reloaded.
        """
        if self._policy.strict:
            hint = "restart the program, or run it without `strict`"
            raise PluginReloadRefused(
                named, "the host is strict: only what was checked at its start is loaded", hint=hint
            )
        if not named.location:
            hint = "pass a changed plugin to another host"
            raise PluginReloadRefused(named, "it was passed to the host as an object", hint=hint)
        for record in group:
            if record.kind in _IN_USE and record.state not in (State.FOUND, State.DENIED):
                raise PluginReloadRefused(
                    named, f"{record.label} belongs to its distribution, and {_IN_USE[record.kind]}"
                )
            loaded = self._table.active(record.kind, record.name)
            if loaded is not None and record.kind == "tool" and _has_sources(loaded):
                raise PluginReloadRefused(named, f"the sources of tools of {record.label} are open")

    async def _replace(
        self, named: Sequence[PluginRecord], group: Sequence[PluginRecord], loads: TaskGroup, owners: TaskGroup
    ) -> tuple[PluginRecord, ...]:
        new = await self._new_records(named, group)
        of_label = {one.label: one for one in group}
        targets = [one for one in new if _is_target(one, of_label.get(one.label), named)]
        self._check_usable(targets)
        importing = self._begin_import(named[0], (*group, *new))
        for one in targets:
            await self._on_load(PluginLoad(one, getattr(of_label.get(one.label), "version", "")))
        found: list[LoadedPlugin] = []
        try:
            found += await self._import(named[0], targets, importing)
            _check_open(named[0], loads)
            for plugin in found:
                await self._loader.enter(plugin, loads, owners)
            registrations = await self._check_hooks(found)
            _check_open(named[0], loads)
            self._check_lifespans(found)
        except BaseException:
            try:
                with anyio.CancelScope(shield=True):
                    for plugin in found:
                        await self._loader.discard(plugin)
            finally:
                self._loader.forget(found, replaced=False)
                importing.abandon()
            raise
        candidates = [_Candidate(one, of_label.get(one.record.label)) for one in found]
        retire = self._swap(_Swap(candidates, new, group, registrations, importing))
        loads.start_soon(retire)
        return tuple(one.record for one in found)

    def _check_lifespans(self, found: Iterable[LoadedPlugin]) -> None:
        """Check that no lifespan has ended since it was entered."""
        for plugin in found:
            if (failure := self._loader.failure(plugin)) is not None:
                raise failure

    async def _new_records(self, named: Sequence[PluginRecord], group: Sequence[PluginRecord]) -> list[PluginRecord]:
        """Read the metadata of a distribution again."""
        records, _ = await self._survey()
        new = [one for one in records if one.distribution == named[0].distribution]
        if not new:
            raise PluginReloadFailed(named[0], f"{named[0].distribution} is not installed anymore")
        labels = {one.label for one in new}
        for record in group:
            if record.state is not State.DENIED and record.label not in labels:
                raise PluginReloadRefused(record, f"{new[0].distribution} {new[0].version} does not provide it anymore")
        return new

    def _check_usable(self, targets: Iterable[PluginRecord]) -> None:
        for record in targets:
            if record.state is State.DENIED:
                raise PluginDenied(record)
            if not record.state.usable:
                raise PluginReloadFailed(record, record.reason)

    def _begin_import(self, named: PluginRecord, records: Iterable[PluginRecord]) -> SecondImport:
        """Check that the packages of plugins can be imported a second time.

        Raises:
            PluginReloadRefused: if they cannot.
        """
        packages = {module_of(one.value).partition(".")[0] for one in records if one.kind != "skill"}
        for record in self._table.records:
            shared = module_of(record.value).partition(".")[0]
            if shared in packages and record.distribution != named.distribution:
                raise PluginReloadRefused(named, f"{record.distribution} has a plugin in its package `{shared}` too")
        if found := sorted(packages & {"sideband", *sys.stdlib_module_names}):
            raise PluginReloadRefused(named, f"its package `{found[0]}` is not its own")
        if any(other.uses(packages) for other in open_tables if other is not self._table):
            raise PluginReloadRefused(named, "another host of this process uses it", hint="close that host first")
        running = ModuleSet.current(tuple(packages))
        if (name := running.shared) is not None:
            raise PluginReloadRefused(named, f"`{name}` is a namespace package, which other distributions may share")
        if (name := running.extension) is not None:
            raise _compiled(named, name)
        try:
            return SecondImport(tuple(sorted(packages)))
        except ModulesBusy:
            raise _busy(named) from None

    async def _import(
        self, named: PluginRecord, targets: Sequence[PluginRecord], importing: SecondImport
    ) -> list[LoadedPlugin]:
        """Import and validate the candidates, all in one thread."""
        try:
            importing.begin()
        except ModulesBusy:
            raise _busy(named) from None
        work = partial(importing.run, partial(self._import_all, targets, current_backend()))
        seconds = self._loader.import_seconds
        with anyio.move_on_after(seconds) as scope:
            found, error = await run_sync(contained, work, abandon_on_cancel=True)
        if scope.cancelled_caught:
            raise PluginReloadFailed(named, f"its import timed out after {seconds:g} s")
        if isinstance(error, ExtensionFound):
            raise _compiled(named, str(error)) from None
        if error is not None:
            raise error
        importing.finish()
        return [self._loader.loaded(record, value, checked) for record, value, checked in found]

    def _import_all(self, targets: Sequence[PluginRecord], backend: str) -> list[tuple[PluginRecord, object, Checked]]:
        found = []
        names = [one.name for one in self._table.records]
        for record in targets:
            importing = Import(record)
            check = partial(self._loader.validate, record, backend, alone=names.count(record.name) == 1)
            try:
                checked = importing.run(check)
            except ExtensionFound:
                raise
            except BaseException as error:
                raise importing.failure(error) from error
            if isinstance(checked, str):
                raise PluginReloadFailed(record, checked)
            record.move(State.IMPORTED)
            record.move(State.VALIDATED)
            found.append((record, importing.value, checked))
        return found

    async def _check_hooks(self, found: Sequence[LoadedPlugin]) -> Mapping[str, Registration]:
        """Check the hooks of the candidates, in a registry of their own and in the order among all others."""
        alone = HookRegistry()
        registrations: dict[str, Registration] = {}
        for plugin in found:
            if (phase := phase_of(plugin.record)) is None:
                continue
            implementation, make = self._loader.implementation(plugin)
            try:
                alone.register(plugin.name, implementation, phase=phase, context=plugin.context, make=make)
                registrations[plugin.name] = self._hooks.checked(
                    plugin.name,
                    implementation,
                    phase=phase,
                    context=plugin.context,
                    make=make,
                    package=plugin.record.package,
                )
                self._hooks.check_order(registrations)
            except HookError as error:
                raise PluginInvalid(plugin.record, error.message) from error
            if phase is not Phase.GUARD:
                check_reserved(alone, plugin)
        if registrations and self.before_swap is not None:
            await self.before_swap(alone)
            self._hooks.check_order(registrations)
        return registrations

    def _swap(self, swap: _Swap) -> Callable[[], Coroutine[None, None, None]]:
        """Replace the running plugins, and return what is then to be done.

        Nothing is awaited here, so that no call can see a part of it.
        """
        assert swap.importing.imported is not None  # noqa: S101  it was imported
        swap.importing.running.set_aside(all_of_them=True)
        swap.importing.imported.put_back()
        old_slots = [slot for slot in self._table.slots.values() if slot.record in swap.group]
        slots = {slot.record: slot for slot in self._table.slots.values() if slot.record not in swap.group}
        for one in swap.candidates:
            record = one.plugin.record
            record.trail = _trail(one)
            slots[record] = Loadable.of(one.plugin)
        others = [record for record in self._table.records if record not in swap.group]
        records = sorted((*others, *swap.new), key=lambda one: (one.kind, one.name, one.distribution))
        self._table.fill(records, slots)
        self._hooks.replace(swap.registrations)
        old = [plugin for slot in old_slots if (plugin := slot.examined.answer) is not None]
        lifespans = self._loader.forget(old, replaced=True)
        replaced = self._hooks.editions.renew()
        if self.after_swap is not None:
            self.after_swap(replaced)
        return partial(self._retire, replaced, lifespans, swap.importing.running)

    async def _retire(self, replaced: Edition, lifespans: Sequence[Lifespan], modules: ModuleSet) -> None:
        """Exit the lifespans of replaced plugins once nothing uses them anymore."""
        self._replaced.append(modules)
        await replaced.wait()
        for lifespan in reversed(lifespans):
            if (failure := await self._loader.exit(lifespan)) is not None:
                _log.warning("%s", failure.message)
        self._replaced.remove(modules)
        modules.forget()


def _is_target(new: PluginRecord, old: PluginRecord | None, named: Sequence[PluginRecord]) -> bool:
    """Return whether a plugin is to be loaded now: it is named or was loaded, or plugins of its kind are at start."""
    if new.kind == "skill" or (new.state is State.DENIED and old not in named):
        return False
    was_loaded = old is not None and old.state not in (State.FOUND, State.DENIED, State.INCOMPATIBLE)
    return old in named or was_loaded or new.kind in _AT_START


def _check_open(named: PluginRecord, loads: TaskGroup) -> None:
    """Check that the host was not closed meanwhile: nothing would exit a lifespan or forget a module anymore."""
    if loads.cancel_scope.cancel_called:
        raise PluginHostClosed(named.kind, named.name)


def _trail(one: _Candidate) -> tuple[Transition, ...]:
    """Return the transitions of a new plugin after the latest ones of that which it replaces."""
    record, old = one.plugin.record, one.replaced
    record.move(State.ACTIVE, "" if old is None else f"reloaded, in place of {old.version}", decided_by="reload")
    before = old.trail if old is not None else record.trail[:1]
    return (*_bounded(before), *record.trail[1:])


def _bounded(trail: tuple[Transition, ...]) -> tuple[Transition, ...]:
    return (trail[0], *trail[1:][-_MAX_TRAIL:])


def _has_sources(tools: LoadedPlugin) -> bool:
    from ..tools import Tool  # circular import

    return any(not isinstance(one, Tool) for one in tools.contribution)


def _busy(record: PluginRecord) -> PluginReloadRefused:
    return PluginReloadRefused(record, "another import of it has not ended", hint="try again later")


def _compiled(record: PluginRecord, module: str) -> PluginReloadRefused:
    return PluginReloadRefused(record, f"`{module}` is compiled code, of which a process can have only one copy")
