"""Open and close plugins, store, ledger, broker and workers of a host in the right order."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio
from attrs import evolve

from ..approvals import Approver
from ..blobs import BlobScope, BlobStore
from ..broker import Broker, EffectCassette, Ops, Recovered, Redaction, SecretSources, claims_of, recover
from ..calls import ChosenSandbox, Rights, SkillCalls, SkillCatalog, SkillLaunches, WorkerReports
from ..calls._grants import RememberedGrants
from ..calls._nested_calls import NestedSkillCalls
from ..calls._rights import PluginRights
from ..contexts._editions import Edition
from ..environments import Environments
from ..hooks import HookRegistry, HookReport, Redactors
from ..hooks._reports import described
from ..ledger import Ledger
from ..ops import Capability, Grant
from ..plugins import Plugin, PluginError, PluginHost, PluginRecord
from ..plugins._exits import enter
from ..settings import LoadedSettings, load_settings
from ..state import default_home, make_home, remove_temporary_folders
from ..store import Store
from ..workers import WorkerPool
from ._approval_parts import approvals_of
from ._load_records import LoadRecords
from ._plugin_context import HostPluginContext
from ._store_opening import open_store
from ._tool_registry import ToolRegistry
from ._tool_sources import ToolSources

_log = logging.getLogger("sideband")
_Value = TypeVar("_Value")


class HostParts:
    """The parts of a host. They are opened when it is entered, and closed in reverse order. See ``Host``."""

    def __init__(
        self,
        *,
        home: Path | None = None,
        settings: LoadedSettings | Mapping[str, Any] | None = None,
        plugins: Iterable[Plugin] = (),
        autoload: bool = True,
        skill_dirs: Iterable[Path] = (),
        grants: Mapping[str, Iterable[str]] = MappingProxyType({}),
        approver: Approver | None = None,
        on_hook: Callable[[HookReport], None] | None = None,
        cassette: EffectCassette | None = None,
        reads_only: bool = False,
    ) -> None:
        self.home = default_home() if home is None else _checked("home", [home], Path)[0].absolute()
        if not isinstance(settings, LoadedSettings):
            if not isinstance(settings, Mapping | None):
                raise TypeError(f"`settings` must be nested tables or LoadedSettings, got a {type(settings).__name__}")
            settings = load_settings(self.home, environment=os.environ, flags=settings)
        self.settings = settings
        self._inline = _checked("plugins", plugins, Plugin)
        self._autoload = autoload
        explicit = _checked("skill_dirs", skill_dirs, Path)
        self._skill_folders = evolve(settings.skill_folders, explicit=explicit)
        if not isinstance(grants, Mapping):
            raise TypeError(f"`grants`: expected capabilities by skill, got a {type(grants).__name__}")
        self._grants = grants
        self.approver = approver
        self._on_hook = on_hook
        self._reads_only = reads_only
        self._cassette = cassette
        self._stack = AsyncExitStack()
        self._broker: Broker | None = None
        self._opened: Store | None = None
        self.recovered: tuple[Recovered, ...] = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            remedy = "" if "tools" in vars(self) else "; open it first: `async with Host(…) as host:`"
            raise AttributeError(f"`Host` has no attribute `{name}`{remedy}", name=name, obj=self)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await self._open(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, _kind: object, raised: BaseException | None, _traceback: object) -> None:
        await self._stack.aclose()
        if self._tape is not None:
            self._tape.finish(raised)

    async def _open(self, stack: AsyncExitStack) -> None:
        make_home(self.home)
        self.redactor = Redaction()
        cassette = self._cassette
        self._tape = tape = None if cassette is None else cassette.load(home=self.home, redactor=self.redactor)
        replays = tape is not None and tape.replays
        policy = self.settings.settings.policy
        plugin_policy = self.settings.plugin_policy()
        self.hooks = HookRegistry(
            report=self._report_hook,
            trace=self._on_hook is not None,
            order=plugin_policy.order,
            deadlines=policy.deadlines,
        )
        loads = LoadRecords(self.redactor.text, not self._reads_only)
        self.plugins = await enter(
            stack,
            PluginHost(
                plugin_policy,
                home=self.home,
                hooks=self.hooks,
                inline=self._inline,
                autoload=self._autoload,
                context_factory=self._context_of,
                on_load=loads.take,
                load_at_start=False,
                without_lifespan=("op", "provider") if replays else (),
            ),
        )
        # Before guards and hooks, which may use it in their lifespans.
        self.store = self._opened = await open_store(
            self.plugins, self.home / "store", stack, configured=plugin_policy.config, autoload=self._autoload
        )
        stack.callback(setattr, self, "_opened", None)
        self.plugins.before_swap = self._add_redactors
        sources = SecretSources(self.plugins, self.home, policy.require_open_secrets)
        self.ledger = await enter(stack, Ledger(self.home / "ledger", self.store, closed=sources.any_closed))
        await loads.begin(self.ledger)
        await self.plugins.start()
        await self._add_redactors(self.hooks)
        # Before the first effect and its record, which may contain a value that a skill stored earlier.
        await sources.open()
        await loads.begin_failures()
        claims = await claims_of(self.store, self.ledger)
        stack.push_async_callback(claims.settle_all)
        self.approvals = approvals_of(
            self.home,
            self.settings,
            plugins=self.plugins,
            store=self.store,
            ledger=self.ledger,
            redactor=self.redactor,
            hooks=self.hooks,
        )
        self.blobs = BlobStore(self.home / "blobs")
        self.sandbox = ChosenSandbox(self.plugins, policy.tier, self._make_worker_folders(), alone=policy.alone)
        stack.push_async_callback(self.sandbox.close)
        ops = Ops(self.plugins)
        self.broker = Broker(
            ops=ops,
            hooks=self.hooks,
            ledger=self.ledger,
            claims=claims,
            redactor=self.redactor,
            home=self.home,
            blobs=self.blobs,
            launch=self.sandbox.launch_program,
            sources=sources,
            approver=self.approver,
            approvals=self.approvals,
            own_rights=PluginRights(
                self.settings, ops, self.approvals, self.approver, self._grants, RememberedGrants(self.home)
            ),
            tape=tape,
        )
        self._broker = self.broker
        stack.callback(setattr, self, "_broker", None)
        stack.push_async_callback(self.broker.attempts.aclose)
        self.environments = Environments(self.home)
        self.catalog = SkillCatalog(self.plugins, self._skill_folders, self.home)
        if not replays:  # else ops would be asked for outcomes
            self.recovered = tuple(await recover(self.broker, self.ledger, claims))
        self.broker.attempts.forget_abandoned()
        for capabilities in self._grants.values():
            await self.broker.ops.grant(capabilities)  # so that an invalid one is reported at once
        recorder = await enter(stack, WorkerReports(self.broker))
        pool = WorkerPool(
            self.sandbox,
            maximum=policy.workers,
            idle_seconds=policy.idle_seconds,
            report=recorder.take,
            observe=self.hooks.observe,
        )
        self._launches = SkillLaunches(self.home, self.plugins, ops, self.environments, policy)
        self._calls = SkillCalls(
            policy=policy,
            catalog=self.catalog,
            launches=self._launches,
            broker=self.broker,
            pool=pool,
            rights=Rights(self.home, self.settings, self.broker.ops, self.approvals, self._grants),
            sandbox=self.sandbox,
            report=self._report,
            approver=self.approver,
        )
        tool_sources = ToolSources(self.redactor.text, tape)
        self.tools = ToolRegistry(
            self.plugins, self.catalog, self._calls, self.broker.ops, self._grants, tasks=tool_sources
        )
        self.broker.nested = NestedSkillCalls(
            broker=self.broker,
            calls=self._calls,
            catalog=self.catalog,
            reach=self.tools.level,
        )
        self.plugins.after_swap = self._renew
        # Calls that lose their worker close their resources before ledger and plugins are closed.
        stack.push_async_callback(self._calls.finish)
        await enter(stack, pool)
        await enter(stack, tool_sources)
        self._tasks = await enter(stack, anyio.create_task_group())
        stack.callback(self._tasks.cancel_scope.cancel)

    def _make_worker_folders(self) -> list[Path]:
        """Create the folders that workers read: snapshots, SDKs and environments."""
        folders = [self.home / name for name in ("skills", "sdk", "envs")]
        for folder in folders:
            make_home(folder)
            # A worker may run as another user and must read them; the parent folder keeps out all other users.
            folder.chmod(0o755)
            remove_temporary_folders(folder)
        return folders

    def _renew(self, replaced: Edition) -> None:
        """Forget what was made of plugins that a reload has replaced."""
        self.broker.ops.renew(replaced)
        self._launches.forget()
        self.catalog.forget()

    async def _add_redactors(self, hooks: HookRegistry) -> None:
        for found in await hooks.collect(Redactors()):
            self.redactor.add_pattern(found.value.pattern, found.value.name)

    def _all_rights(self) -> Grant:
        # Undo restores content from blobs, even if no plugin for the family of blobs is installed.
        return Grant.of(Capability(name) for name in {*self.plugins.names("op"), BlobScope.family})

    def context_for(self, plugin: str, config: Any = None) -> HostPluginContext:
        """Return a context for a plugin, a part of the core, or a guard of the embedding program."""
        broker, store = partial(self._open_broker, plugin), partial(self._opened_store, plugin)
        return HostPluginContext(plugin, config, self.home, broker, self._all_rights, self.redactor, store)

    def _context_of(self, record: PluginRecord, config: Any) -> HostPluginContext:
        return evolve(self.context_for(record.name, config), record=record)

    def _open_broker(self, plugin: str) -> Broker:
        if self._broker is None:
            raise PluginError(
                f"the plugin `{plugin}` cannot cause effects while the host is opening or closing",
                name=plugin,
                hint="cause the effect on first use",
            )
        return self._broker

    def _opened_store(self, plugin: str) -> Store:
        if self._opened is None:
            problem = f"the plugin `{plugin}` cannot use the store, which is not open yet or closed"
            raise PluginError(problem, name=plugin, hint="use it while the host is open")
        return self._opened

    def _report(self, error: Exception) -> None:
        text = self.redactor.text(f"{type(error).__name__}: {error}")
        _log.warning("closing a resource of a call failed: %s", text)

    def _report_hook(self, report: HookReport) -> None:
        if report.error is not None:
            report.error.clean(self.redactor.text)
            _log.warning("%s", described(report.error))
        if self._on_hook is not None:
            self._on_hook(evolve(report, reason=self.redactor.text(report.reason)))


def _checked(name: str, values: Iterable[Any], kind: type[_Value]) -> tuple[_Value, ...]:
    """Return the values, or raise a ``TypeError`` that names the argument if one has another type."""
    if not isinstance(values, Iterable):
        raise TypeError(f"`{name}`: expected a list, got a {type(values).__name__}: write `[…]`")
    found = (values,) if isinstance(values, str) else tuple(values)
    for value in found:
        if not isinstance(value, kind):
            remedy = f": write `Path({value!r})`" if kind is Path and isinstance(value, str) else ""
            raise TypeError(f"`{name}`: expected a {kind.__name__}, got a {type(value).__name__}{remedy}")
    return found
