"""The host, which opens and closes plugins, store, ledger, broker and workers in the right order."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from pathlib import Path
from secrets import token_hex
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio
from attrs import evolve

from ..approvals import Approver
from ..blobs import BlobScope, BlobStore
from ..broker import (
    Broker,
    Call,
    CallProgress,
    EffectReport,
    Ops,
    Recovered,
    Redaction,
    SecretSources,
    TakeProgress,
    UndoneStep,
    UndoPlan,
    carry_out,
    claims_of,
    delivered,
    plan_undo,
    recover,
)
from ..calls import (
    CallRequest,
    CallResult,
    ChosenSandbox,
    Rights,
    SkillCalls,
    SkillCatalog,
    SkillLaunches,
    WorkerReports,
)
from ..calls._grants import RememberedGrants
from ..calls._rights import PluginRights
from ..contexts._editions import Edition
from ..environments import Environments
from ..errors import ConfigurationError, SidebandError, safe_text
from ..hooks import HookRegistry, HookReport, Redactors
from ..ledger import Ledger
from ..loading import LoadedSkills
from ..ops import Capability, Grant, Origin
from ..plugins import Plugin, PluginError, PluginHost, PluginInvalid, PluginRecord
from ..plugins._exits import enter
from ..plugins._objects import describe
from ..settings import LoadedSettings, load_settings
from ..state import default_home, make_home, remove_temporary_folders
from ..store import Store, StoreSpec
from ..workers import WorkerPool
from ._approval_parts import approvals_of
from ._own_calls import own_call
from ._plugin_context import HostPluginContext
from ._tool_registry import ToolRegistry
from ._tool_sources import ToolSources

_log = logging.getLogger("sideband")
T = TypeVar("T")


class Host:
    """Runs ops and skills. Use it with ``async with``, on asyncio or trio.

    Args:
        home: the folder for all state; by default ``$SIDEBAND_HOME`` or ``~/.sideband``.
        settings: the configuration: loaded settings, or nested tables that override the user file and the environment.
            By default, only the user file and the environment are used.
        plugins: plugins passed as objects, in addition to installed ones.
        autoload: whether to use installed plugins. Local files that the settings name are used in any case.
        skill_dirs: folders of skills, searched before those of the settings.
        grants: capabilities by skill that its calls get in addition to those that were granted otherwise; not stored.
        approver: answers requests for approval: grants of skills, and questions of guards about effects and tool calls.
            An agent with its own approver asks that one instead. ``None`` without an approver: a request is then stored
            until it is answered with ``host.approvals`` or ``sideband approvals``.

    Attributes:
        approvals: the requests for approval and their answers, see ``sideband.approvals.Approvals``.
        tools: the tools that agents may use. ``await host.tools.wait_for_sources()`` waits until each source of the
            host has listed its tools once, or failed to; ``host.tools.problems`` has the tools that were omitted.
        recovered: the effects that were interrupted when the host was last killed, and their outcomes.

    Raises:
        TypeError: if an argument has another type, such as a text for a path.

    Example:
        >>> async def stars():
        ...     async with Host(skill_dirs=[Path("skills")]) as host:
        ...         return await host.call("github.stars", repo="pytest-dev/pluggy")
    """

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

    async def __aexit__(self, *_exception: object) -> None:
        await self._stack.aclose()

    async def _open(self, stack: AsyncExitStack) -> None:
        make_home(self.home)
        self.redactor = Redaction()
        policy = self.settings.settings.policy
        plugin_policy = self.settings.plugin_policy()
        self.hooks = HookRegistry(report=self._report_hook, order=plugin_policy.order, deadlines=policy.deadlines)
        self.plugins = await enter(
            stack,
            PluginHost(
                plugin_policy,
                home=self.home,
                hooks=self.hooks,
                inline=self._inline,
                autoload=self._autoload,
                context_factory=lambda record, config: self.context_for(record.name, config),
                load_at_start=False,
            ),
        )
        # Before guards and hooks, which may use it in their lifespans.
        self.store = self._opened = await self._open_store(stack)
        stack.callback(setattr, self, "_opened", None)
        self.plugins.before_swap = self._add_redactors
        await self.plugins.start()
        await self._add_redactors(self.hooks)
        # Before the first effect and record, which may contain a value that a skill stored earlier.
        sources = SecretSources(self.plugins, self.home, policy.require_open_secrets)
        await sources.open()
        self.ledger = await enter(stack, Ledger(self.home / "ledger", self.store, closed=sources.any_closed))
        claims = await claims_of(self.store, self.ledger)
        self.approvals = approvals_of(
            self.home,
            self.settings,
            plugins=self.plugins,
            store=self.store,
            ledger=self.ledger,
            redactor=self.redactor,
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
        )
        self._broker = self.broker
        stack.callback(setattr, self, "_broker", None)
        stack.push_async_callback(self.broker.attempts.aclose)
        self.environments = Environments(self.home)
        self.catalog = SkillCatalog(self.plugins, self._skill_folders, self.home)
        self.recovered = tuple(await recover(self.broker, self.ledger, claims))
        self.broker.attempts.forget_abandoned()
        for capabilities in self._grants.values():
            await self.broker.ops.grant(capabilities)  # so that an invalid one is reported at once
        recorder = await enter(stack, WorkerReports(self.broker))
        pool = WorkerPool(self.sandbox, maximum=policy.workers, idle_seconds=policy.idle_seconds, report=recorder.take)
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
        tool_sources = ToolSources(self.redactor.text)
        self.tools = ToolRegistry(
            self.plugins, self.catalog, self._calls, self.broker.ops, self._grants, tasks=tool_sources
        )
        self.plugins.after_swap = self._renew
        # Calls that lose their worker close their resources before ledger and plugins are closed.
        stack.push_async_callback(self._calls.finish)
        await enter(stack, pool)
        await enter(stack, tool_sources)
        self._tasks = await enter(stack, anyio.create_task_group())
        stack.callback(self._tasks.cancel_scope.cancel)

    def start_task(self, function: Callable[[], Awaitable[object]]) -> None:
        """Run a function in a task of the host, without waiting for it. Closing the host cancels it.

        Its exceptions are logged.
        """
        self._tasks.start_soon(self._run_task, function)

    async def _run_task(self, function: Callable[[], Awaitable[object]]) -> None:
        try:
            await function()
        except Exception as error:  # noqa: BLE001  one task must not end the others
            _log.warning("a task failed: %s", self.redactor.text(f"{type(error).__name__}: {error}"))

    def _make_worker_folders(self) -> list[Path]:
        """Create the folders that workers read: snapshots, SDKs and environments."""
        folders = [self.home / name for name in ("skills", "sdk", "envs")]
        for folder in folders:
            make_home(folder)
            # A worker may run as another user and must read them; the parent folder keeps out all other users.
            folder.chmod(0o755)
            remove_temporary_folders(folder)
        return folders

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """Run a tool of a skill and return its result.

        Args:
            tool: ``skill.tool``.
            arguments: the arguments of the tool.

        Raises:
            CallError: if the call failed: ``GrantRequired`` if the skill lacks rights, ``SkillFailed`` if it raised.
            WorkerError: if the worker failed.
        """
        return (await self.run(CallRequest(tool, arguments))).output

    async def run(self, request: CallRequest) -> CallResult:
        """Run a tool of a skill with all options of a call, and return the result with its metadata."""
        return await self._calls.run(request)

    async def op(
        self,
        name: str,
        params: Mapping[str, Any],
        *,
        grants: Iterable[str] | None = None,
        key: str | None = None,
        deadline: float | None = None,
        principal: str = "user",
        on_progress: TakeProgress | None = None,
        on_effect: Callable[[EffectReport], None] | None = None,
    ) -> Any:
        """Run one op through the broker and return its result as plain data.

        Args:
            name: ``family.verb``.
            params: the parameters of the op.
            grants: the capabilities of the call; ``None`` for all, since the request comes from the user, not a skill.
            key: an idempotency key: an effect with this key happens at most once.
            deadline: the deadline in seconds from now.
            principal: the principal on whose behalf the op runs.
            on_progress: called with each ``ToolProgress`` of the op and its child effects, one after the other; may be
                async. The op never waits for it while it runs: if it is slow, it misses progress, and is called with
                gaps.
            on_effect: called for each effect; must not block.

        Raises:
            OpError: if the op failed.
        """
        async with self._own_call("op", principal, deadline) as call:
            call.on_effect = on_effect
            if grants is not None:
                call.grant = await self.broker.ops.grant(grants)
            if on_progress is None:
                return await self.broker.dispatch(call, name, params, key=key)
            call.progress = CallProgress(call.id, name, self.redactor)
            async with delivered(call.progress, on_progress):
                return await self.broker.dispatch(call, name, params, key=key)

    async def sync(self) -> None:
        """Return when everything recorded so far is on disk, so that it survives a power failure.

        Call it before a person sees a result of ``call`` or ``op``. Closing the host does the same.

        Raises:
            LedgerError, StoreError: if it could not be synced.
        """
        await self.broker.attempts.sync()

    async def plan_undo(self, effect: str, *, principal: str = "user") -> UndoPlan:
        """Plan how to undo an effect, without changing anything.

        Args:
            effect: the id of the effect in the ledger; for a tool call, the plan covers all its effects.
            principal: the principal on whose behalf the plan is made.

        Raises:
            EffectMissing: if the effect does not exist.
            OpError: if the op's plugin is unavailable, or the op could not make a plan.

        Example:
            >>> async def undo_effect(host: Host, effect: str) -> None:
            ...     plan = await host.plan_undo(effect)
            ...     for sentence in plan.remains:
            ...         print(sentence)
            ...     await host.undo(plan)
        """
        async with self._own_call("undo", principal) as call:
            return await plan_undo(self.broker, self.ledger, call, effect)

    async def undo(
        self,
        plan: UndoPlan,
        *,
        principal: str = "user",
        on_effect: Callable[[EffectReport], None] | None = None,
    ) -> Sequence[UndoneStep]:
        """Run the steps of a plan in order, until one fails. Each step is an effect, and happens at most once.

        Args:
            plan: a plan from ``plan_undo``.
            principal: the principal on whose behalf the steps run.
            on_effect: called for each effect; must not block.

        Returns:
            The outcome of each attempted step.
        """
        async with self._own_call("undo", principal) as call:
            call.on_effect = on_effect
            return await carry_out(self.broker, call, plan)

    def _own_call(
        self, purpose: str, principal: str, deadline: float | None = None
    ) -> AbstractAsyncContextManager[Call]:
        """Open a call of the user, with all rights."""
        domain = f"{purpose}:{principal}:{token_hex(8)}"
        origin, editions = Origin(principal=principal), self.hooks.editions
        return own_call(self._all_rights(), domain, origin, self._report, editions=editions, deadline=deadline)

    async def reload(self, plugin: str, *, kind: str | None = None) -> tuple[PluginRecord, ...]:
        """Import an installed plugin again, and all others of its distribution that are loaded, while the host runs.

        The candidates are imported and validated beside the running plugins. Then they replace these in one step. What
        runs finishes with the plugins it began with: a call, an effect, a hook, and a run of an agent with its hooks
        and guards. The lifespans of the old plugins are exited when the last of these has ended. The configuration is
        not read again.

        Args:
            plugin: the entry-point name.
            kind: the kind, such as ``op``, if plugins of several distributions have this name.

        Returns:
            The records of the new plugins, whose ``version`` may be another one.

        Raises:
            PluginNotFound: if there is no such plugin.
            PluginDenied: if the policy does not allow it.
            PluginReloadRefused: if it would not be safe; nothing has changed. So it is for a store, a sandbox, a source
                of secrets, open sources of tools, compiled modules, what another open host of this process uses, and
                in a strict host.
            PluginReloadFailed: if a candidate is unusable; nothing has changed.

        Example:
            >>> async def update(host: Host) -> None:
            ...     for record in await host.reload("weather"):
            ...         print(record.label, record.version)
        """
        return await self.plugins.reload(plugin, kind=kind)

    def _renew(self, replaced: Edition) -> None:
        """Forget what was made of plugins that a reload has replaced."""
        self.broker.ops.renew(replaced)
        self._launches.forget()
        self.catalog.forget()

    async def _add_redactors(self, hooks: HookRegistry) -> None:
        for found in await hooks.collect(Redactors()):
            self.redactor.add_pattern(found.value.pattern, found.value.name)

    async def skills(self) -> LoadedSkills:
        """Return the loaded skills, and the problems of skills that could not be loaded."""
        return await self.catalog.all()

    def _all_rights(self) -> Grant:
        # Undo restores content from blobs, even if no plugin for the family of blobs is installed.
        return Grant.of(Capability(name) for name in {*self.plugins.names("op"), BlobScope.family})

    def context_for(self, plugin: str, config: Any = None) -> HostPluginContext:
        """Return a context for a plugin, a part of the core, or a guard of the embedding program."""
        broker, store = partial(self._open_broker, plugin), partial(self._opened_store, plugin)
        return HostPluginContext(plugin, config, self.home, broker, self._all_rights, self.redactor, store)

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
            _log.warning("%s", self.redactor.text(f"{report.plugin}: {safe_text(report.error)}"))

    async def _open_store(self, stack: AsyncExitStack) -> Store:
        names = self.plugins.names("store") or self.plugins.names("store", broken=True)
        if len(names) != 1:
            if names:
                claims = (
                    f"`{one.name}` of {one.claim}"
                    for one in self.plugins.records
                    if one.kind == "store" and one.name in names
                )
                problem = f"several store plugins are installed: {', '.join(claims)}"
                hint = 'keep one and deny the others under `[policy.deny]`: "store.NAME" = "reason"'
            else:
                problem, hint = "no store plugin is installed", "pip install sideband-store-sqlite"
                if not self._autoload:
                    problem = "`plugins` contains no store, and `autoload=False` ignores installed plugins"
                    hint = 'add `Plugin("store", "sqlite", sideband_store_sqlite.plugin)`, or omit `autoload=False`'
            raise ConfigurationError("plugins", problem, hint=hint)
        plugin = await self.plugins.load("store", names[0])
        spec: StoreSpec = plugin.contribution[0]
        folder = self.home / "store"
        make_home(folder)
        try:
            store = await enter(stack, spec.open(folder))
            if isinstance(store, Store):
                return store
            problem, cause = f"its `open` must yield a Store, got a {type(store).__name__}", None
        except (SidebandError, OSError):
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001  a store may raise anything
            problem, cause = f"it cannot be opened: {describe(error)}", error
        raise PluginInvalid(plugin.record, problem) from cause


def _checked(name: str, values: Iterable[Any], kind: type[T]) -> tuple[T, ...]:
    """Return the values, or raise a ``TypeError`` that names the argument if one has another type."""
    if not isinstance(values, Iterable):
        raise TypeError(f"`{name}`: expected a list, got a {type(values).__name__}: write `[…]`")
    found = (values,) if isinstance(values, str) else tuple(values)
    for value in found:
        if not isinstance(value, kind):
            remedy = f": write `Path({value!r})`" if kind is Path and isinstance(value, str) else ""
            raise TypeError(f"`{name}`: expected a {kind.__name__}, got a {type(value).__name__}{remedy}")
    return found
