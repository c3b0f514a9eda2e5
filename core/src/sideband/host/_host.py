"""The host: plugins, store, ledger, broker and workers, put together, opened and closed in the right order."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, Self

from ..blobs import BlobScope, BlobStore
from ..broker import (
    Approver,
    Broker,
    Call,
    Claims,
    EffectReport,
    Ops,
    Progress,
    Recovered,
    Redaction,
    UndoneStep,
    UndoPlan,
    carry_out,
    plan_undo,
    recover,
)
from ..calls import (
    CallRequest,
    CallResult,
    ChosenSandbox,
    GrantAsker,
    Rights,
    SkillCalls,
    SkillCatalog,
    SkillLaunches,
    WorkerReports,
)
from ..environments import Environments
from ..errors import ConfigurationError
from ..hooks import HookRegistry, HookReport, Redactors
from ..ledger import Ledger
from ..loading import LoadedSkills
from ..ops import Capability, Grant, Origin
from ..plugins import Plugin, PluginError, PluginHost
from ..plugins._exits import enter
from ..settings import LoadedSettings, load_settings
from ..state import default_home, make_home, remove_temporary_folders
from ..store import StoreSpec
from ..workers import WorkerPool
from ._own_calls import own_call
from ._plugin_context import HostPluginContext
from ._tool_registry import ToolRegistry

_log = logging.getLogger("sideband")


class Host:
    """Runs ops and skills. Used as ``async with``, on asyncio or trio.

    Args:
        home: the folder for all state; ``$SIDEBAND_HOME`` or ``~/.sideband`` if ``None``.
        settings: the configuration: as the file would be (nested tables), or as loaded. ``None``: only the user's file
            and the environment.
        plugins: plugins handed over as objects, besides or instead of the installed ones.
        autoload: whether installed plugins are used.
        skill_dirs: folders of skills.
        asker: asks a person whether a skill may have what it asks for; ``None`` if nobody can be asked.
        approver: puts a guard's question about an effect to a person; ``None`` if nobody can be asked.

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
        asker: GrantAsker | None = None,
        approver: Approver | None = None,
    ) -> None:
        self.home = (home or default_home()).absolute()
        if not isinstance(settings, LoadedSettings):
            settings = load_settings(self.home, environment=os.environ, flags=settings)
        self.settings = settings
        self._inline = tuple(plugins)
        self._autoload = autoload
        self._skill_dirs = tuple(skill_dirs)
        self._asker = asker
        self._approver = approver
        self._stack = AsyncExitStack()
        self._broker: Broker | None = None
        self.recovered: tuple[Recovered, ...] = ()

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
            ),
        )
        for found in await self.hooks.collect(Redactors()):
            self.redactor.add_pattern(found.value.pattern, found.value.name)
        self.store = await enter(stack, await self._open_store())
        self.ledger = await enter(stack, Ledger(self.home / "ledger", self.store))
        claims = Claims(self.store, self.ledger)
        self.blobs = BlobStore(self.home / "blobs")
        self.sandbox = ChosenSandbox(self.plugins, policy.tier, self._make_worker_folders(), alone=policy.alone)
        stack.push_async_callback(self.sandbox.close)
        self.broker = Broker(
            ops=Ops(self.plugins),
            hooks=self.hooks,
            ledger=self.ledger,
            claims=claims,
            redactor=self.redactor,
            home=self.home,
            blobs=self.blobs,
            launch=self.sandbox.launch_program,
            approver=self._approver,
        )
        self._broker = self.broker
        stack.callback(setattr, self, "_broker", None)
        self.environments = Environments(self.home)
        self.catalog = SkillCatalog(self.plugins, self._skill_dirs)
        self.recovered = tuple(await recover(self.broker, self.ledger, claims))
        recorder = await enter(stack, WorkerReports(self.broker))
        pool = WorkerPool(self.sandbox, maximum=policy.workers, idle_seconds=policy.idle_seconds, report=recorder.take)
        self._calls = SkillCalls(
            policy=policy,
            catalog=self.catalog,
            launches=SkillLaunches(self.home, self.plugins, self.broker.ops, self.environments, policy),
            broker=self.broker,
            pool=pool,
            rights=Rights(self.home, self.settings, self.broker.ops, self._asker),
            sandbox=self.sandbox,
            report=self._report,
        )
        self.tools = ToolRegistry(self.plugins, self.catalog, self._calls, self.broker.ops)
        # Calls that lose their worker close what their ops left open while ledger and plugins are still there.
        stack.push_async_callback(self._calls.finish)
        await enter(stack, pool)

    def _make_worker_folders(self) -> list[Path]:
        """Where all lies that workers read: snapshots, SDKs and environments."""
        folders = [self.home / name for name in ("skills", "sdk", "envs")]
        for folder in folders:
            make_home(folder)
            # A worker may run as a user of its own, who reads them; others can't pass the folder above.
            folder.chmod(0o755)
            remove_temporary_folders(folder)
        return folders

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """Run a tool of a skill and return what it returned.

        Args:
            tool: ``skill.tool``.
            arguments: the tool's.

        Raises:
            CallError: there is no result; ``GrantRequired`` if the skill lacks rights, ``SkillFailed`` if it raised.
            WorkerError: the worker failed.
        """
        return (await self.run(CallRequest(tool, arguments))).output

    async def run(self, request: CallRequest) -> CallResult:
        """Run a tool of a skill, with everything that can be said about a call and its result."""
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
        on_progress: Callable[[Progress], None] | None = None,
        on_effect: Callable[[EffectReport], None] | None = None,
    ) -> Any:
        """Run one op through the broker and return its result as plain data.

        Args:
            name: ``family.verb``.
            params: its parameters.
            grants: the rights; ``None``: all, since the user asks without a skill in between.
            key: an idempotency key: an effect with this key happens at most once.
            deadline: seconds.
            principal: on whose behalf.
            on_progress, on_effect: told as things happen; must not block.

        Raises:
            OpError: there is no result.
        """
        async with self._own_call("op", principal, deadline) as call:
            call.on_progress, call.on_effect = on_progress, on_effect
            if grants is not None:
                call.grant = await self.broker.ops.grant(grants)
            return await self.broker.dispatch(call, name, params, key=key)

    async def plan_undo(self, effect: str, *, principal: str = "user") -> UndoPlan:
        """What would be done to take an effect back, and what can't be. Changes nothing.

        Args:
            effect: its id in the ledger; of a tool call, all that it did.
            principal: on whose behalf.

        Raises:
            EffectMissing: there is no such effect.
            OpError: the op's plugin can't be used, or its plan failed.

        Example:
            >>> async def take_back(host: Host, effect: str) -> None:
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
        """Do what a plan says, in order, until a step fails. Each step is an effect of its own; none is done twice.

        Args:
            plan: from ``plan_undo``.
            principal: on whose behalf.
            on_effect: told of each effect; must not block.

        Returns:
            How each step that was tried went.
        """
        async with self._own_call("undo", principal) as call:
            call.on_effect = on_effect
            return await carry_out(self.broker, call, plan)

    def _own_call(self, what: str, principal: str, deadline: float | None = None) -> AbstractAsyncContextManager[Call]:
        """A call of the user's own, with all rights."""
        domain = f"{what}:{principal}:{token_hex(8)}"
        return own_call(self._all_rights(), domain, Origin(principal=principal), self._report, deadline)

    async def skills(self) -> LoadedSkills:
        """The skills that could be loaded, and the problems of the others."""
        return await self.catalog.all()

    def _all_rights(self) -> Grant:
        # what other ops keep as blobs can be put back where there is no plugin for blobs
        return Grant.of(Capability(name) for name in {*self.plugins.names("op"), BlobScope.family})

    def context_for(self, plugin: str, config: Any = None) -> HostPluginContext:
        """The context of a plugin, or of what is none: a part of the core, or a guard of a program's own."""
        broker = partial(self._open_broker, plugin)
        return HostPluginContext(plugin, config, self.home, broker, self._all_rights, self.redactor)

    def _open_broker(self, plugin: str) -> Broker:
        if self._broker is None:
            raise PluginError(
                f"the plugin `{plugin}` can't cause effects while the host is opened or closed",
                name=plugin,
                hint="do it when it is first used",
            )
        return self._broker

    def _report(self, error: Exception) -> None:
        text = self.redactor.text(f"{type(error).__name__}: {error}")
        _log.warning("closing what a call left open failed: %s", text)

    def _report_hook(self, report: HookReport) -> None:
        if report.error is not None:
            _log.warning("%s", self.redactor.text(f"{report.plugin}: {report.error}"))

    async def _open_store(self) -> Any:
        names = self.plugins.names("store")
        if len(names) != 1:
            found = f"there are {' and '.join(names)}" if names else "none is installed"
            leave_one = 'leave one, and deny the others under `[policy.deny]`: "store.NAME" = "reason"'
            hint = leave_one if names else "pip install sideband-store-sqlite"
            raise ConfigurationError("plugins", f"a host needs one store, and {found}", hint=hint)
        plugin = await self.plugins.load("store", names[0])
        spec: StoreSpec = plugin.contribution[0]
        folder = self.home / "store"
        make_home(folder)
        return spec.open(folder)
