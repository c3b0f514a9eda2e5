"""The host: what a program does with its parts."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from secrets import token_hex
from typing import Any

from ..broker import (
    Call,
    CallProgress,
    EffectReport,
    TakeProgress,
    UndoneStep,
    UndoPlan,
    carry_out,
    delivered,
    effects_to_undo,
    plan_undo,
)
from ..calls import CallRequest, CallResult
from ..ledger import EffectRecord
from ..loading import LoadedSkills
from ..ops import Origin
from ..plugins import PluginRecord
from ._own_calls import own_call
from ._parts import HostParts

_log = logging.getLogger("sideband")


class Host(HostParts):
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
        on_hook: called with a ``HookReport`` of each call of a plugin's hook, also of agents, with its package, its
            duration and what it did, in which the known secrets are redacted; must not block. Without it, only
            failures are reported, in the log.
        cassette: records the effects of this host in a file, or answers them from it, see ``sideband_cassettes``.
        reads_only: whether it is opened to read its state as it is, for example to verify the ledger. The plugins that
            it loads are then not recorded before it records something else.

    Attributes:
        approvals: the requests for approval and their answers, see ``sideband.approvals.Approvals``.
        tools: the tools that agents may use. ``await host.tools.wait_for_sources()`` waits until each source of the
            host has listed its tools once, or failed to; ``host.tools.problems`` has the tools that were omitted.
        recovered: the effects that were interrupted when the host was last killed, and their outcomes.

    Raises:
        TypeError: if an argument has another type, such as a text for a path.
        CassetteInvalid: when it is opened, if the cassette cannot be replayed.
        CassetteDivergence: when it is closed, if other effects were requested than recorded.
        StateUnwritable: when it is closed, if the cassette cannot be written.

    Example:
        >>> async def stars():
        ...     async with Host(skill_dirs=[Path("skills")]) as host:
        ...         return await host.call("github.stars", repo="pytest-dev/pluggy")
    """

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

    async def effects_to_undo(self, *, session: str | None = None, run: str | None = None) -> Sequence[EffectRecord]:
        """Return what a session or a run may have changed, newest first, with what its child agents may have changed.

        To undo all of it, plan and undo one effect after the other, in this order: often an effect can be undone only
        after a later one.

        Args:
            session: the id of an agent's session.
            run: the id of a run, or of a call that was not made by an agent.

        Raises:
            ValueError: if both are missing.

        Example:
            >>> async def undo_session(host: Host, session: str) -> None:
            ...     for effect in await host.effects_to_undo(session=session):
            ...         await host.undo(await host.plan_undo(effect.effect))
        """
        if not session and not run:
            raise ValueError("effects_to_undo() needs a session or a run")
        return await effects_to_undo(self.ledger, session=session, run=run)

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

    async def skills(self) -> LoadedSkills:
        """Return the loaded skills, and the problems of skills that could not be loaded."""
        return await self.catalog.all()
