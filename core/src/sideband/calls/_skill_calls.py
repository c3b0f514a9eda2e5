"""Runs one tool of a skill: arguments, limits, copy, rights and worker, in this order."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from secrets import token_hex
from types import MappingProxyType
from typing import Any

import anyio
from anyio import to_thread
from attrs import Factory, evolve, field, frozen

from ..broker import Broker, Call, EffectReport, Progress
from ..errors import ConfigurationError, SidebandError
from ..hooks import HookRegistry
from ..loading import SkillError, SkillSpec, ToolSpec
from ..ops import Capability, CapabilityInvalid, Grant, OpDenied, OpError, Origin
from ..settings import LoadedSettings
from ..workers import (
    ArgumentsInvalid,
    CallAnswer,
    GrantRequired,
    Isolation,
    LaunchRequest,
    LogLine,
    WorkerCall,
    WorkerPool,
)
from ._catalog import SkillCatalog
from ._grants import RememberedGrants
from ._isolation import ChosenSandbox
from ._launches import SkillLaunches
from ._limits import call_timeout

__all__ = ["CallRequest", "CallResult", "GrantAsker", "SkillCalls"]

GrantAsker = Callable[[SkillSpec, Grant], Awaitable[bool]]
"""Asks a person whether a skill may have these capabilities; whether the person said yes."""

_LONGEST_EFFECTS = 5_000
_LONGEST_LOGS = 10_000
# What is longer takes so long to redact that others would notice.
_LARGE = 65_536
_CLOSING_SECONDS = 5.0
_MOST_RIGHTS = 1_024
_NOBODY = Origin()


@frozen
class CallRequest:
    """One call of a tool.

    Args:
        tool: ``skill.tool``.
        arguments: by name; checked against the tool's schema.
        grants: the capabilities for this call. ``None``: what was remembered and what the policy grants, and if that
            is not all that the skill asks for, whoever can be asked.
        timeout: seconds, what is waited for a worker included; ``None``: the tool's, the skill's or the policy's.
        alone: whether it gets a worker of its own, ended with it. So it does also if its skill or the policy says so.
        key: makes the call's effects idempotent: a call with the same key repeats none of them.
        principal: on whose behalf.
        on_progress, on_effect, on_log: told as things happen; must not block.
        origin: the agent's session, run and step, if an agent asks; recorded with each effect.
        hooks: the agent's guards and hooks; ``None``: the host's.
    """

    tool: str
    arguments: Mapping[str, Any] = Factory(dict)
    grants: tuple[str, ...] | None = None
    timeout: float | None = None
    alone: bool = False
    key: str | None = None
    principal: str = "user"
    on_progress: Callable[[Progress], None] | None = field(default=None, repr=False)
    on_effect: Callable[[EffectReport], None] | None = field(default=None, repr=False)
    on_log: Callable[[LogLine], None] | None = field(default=None, repr=False)
    origin: Origin | None = None
    hooks: HookRegistry | None = field(default=None, repr=False)


@frozen
class CallResult:
    """What a call came to.

    Attributes:
        output: what the tool returned, redacted.
        tool: ``skill.tool``.
        call: the call's id, which is ``origin.run`` of its effects unless an agent's run asked for it.
        isolation: the tier that the worker ran on.
        grant: the capabilities that the host held for it.
        effects: its effects, in the order in which they ended.
        logs: what the skill printed.
        ms: how long it took, in milliseconds.
    """

    output: Any
    tool: str
    call: str
    isolation: str
    grant: tuple[str, ...]
    effects: tuple[EffectReport, ...]
    logs: tuple[LogLine, ...]
    ms: float


class SkillCalls:
    """What a host needs to run tools of skills."""

    def __init__(
        self,
        *,
        home: Path,
        settings: LoadedSettings,
        catalog: SkillCatalog,
        launches: SkillLaunches,
        broker: Broker,
        pool: WorkerPool,
        sandbox: ChosenSandbox,
        asker: GrantAsker | None,
        report: Callable[[Exception], object],
    ) -> None:
        self._settings = settings
        self._catalog = catalog
        self._broker = broker
        self._pool = pool
        self._sandbox = sandbox
        self._asker = asker
        self._report = report
        self._remembered = RememberedGrants(home)
        self._launches = launches
        self._running: set[str] = set()
        self._quiet = anyio.Event()

    async def run(self, request: CallRequest) -> CallResult:
        """Run the tool that ``request`` names.

        Raises:
            CallError: the call has no result; its class says whose fault that is.
            WorkerError: the process that ran it failed.
        """
        skill, tool = await self._catalog.tool(request.tool)
        policy = self._settings.settings.policy
        arguments = _validated(tool, request.arguments)
        timeout = call_timeout(policy, skill, tool, request.timeout)
        launch = await self._launches.of(skill)
        grant, granted_by = await self._grant(skill, launch.snapshot.name, request.grants)
        # What the first call of a host has to find out is not taken from its time.
        await self._sandbox.require()
        call = Call(
            id=token_hex(16),
            grant=grant,
            granted_by=granted_by,
            domain=_domain(launch, grant, request.principal),
            origin=_NOBODY,
            deadline=anyio.current_time() + timeout,
            key=request.key,
            on_progress=request.on_progress,
            hooks=request.hooks,
        )
        who = {"principal": request.principal, "skill": skill.key, "tool": tool.name}
        call.origin = Origin(run=call.id, **who) if request.origin is None else evolve(request.origin, **who)
        effects: list[EffectReport] = []
        logs: list[LogLine] = []
        call.on_effect = partial(_collect, effects, request.on_effect, _LONGEST_EFFECTS)
        worker_call = WorkerCall(
            id=call.id,
            tool=tool.full_name,
            domain=call.domain,
            launch=launch,
            alone=request.alone or skill.alone or policy.alone,
            module=os.path.join(launch.snapshot, tool.module),  # noqa: PTH118  each call: pathlib takes thrice as long
            function=tool.name,
            arguments=arguments,
            capabilities=grant.texts(),
            environment=_call_environment(),
            timeout=timeout,
            dispatch=partial(self._dispatch, call),
            is_fire_and_forget=self._is_fire_and_forget,
            log=partial(self._log, logs, request.on_log),
            assigned=partial(_note_isolation, call),
        )
        return await self._run(call, worker_call, effects, logs)

    async def _run(
        self, call: Call, worker_call: WorkerCall, effects: list[EffectReport], logs: list[LogLine]
    ) -> CallResult:
        started = time.perf_counter()
        self._running.add(call.id)
        try:
            answer = await self._pool.call(worker_call)
        except SidebandError as error:
            _blame_refusal(error, effects)
            await self._redact_error(error)
            raise
        finally:
            await call.end(self._report)
            self._running.remove(call.id)
            self._quiet.set()
        return CallResult(
            output=await self._redacted(answer),
            tool=worker_call.tool,
            call=call.id,
            isolation=answer.isolation.label,
            grant=call.grant.texts(),
            effects=tuple(effects),
            logs=tuple(logs),
            ms=round((time.perf_counter() - started) * 1000, 3),
        )

    async def finish(self) -> None:
        """Wait for what calls that have ended still have to close, as long as is reasonable."""
        with anyio.move_on_after(_CLOSING_SECONDS):
            while self._running:
                self._quiet = anyio.Event()
                await self._quiet.wait()

    async def _redacted(self, answer: CallAnswer) -> Any:
        """What the tool returned, redacted; in a thread where that takes long, as others wait for the event loop."""
        if answer.size <= _LARGE:
            return self._broker.redactor.data(answer.value)
        return await to_thread.run_sync(self._broker.redactor.data, answer.value)

    async def _redact_error(self, error: SidebandError) -> None:
        if len(error.message) + len(getattr(error, "traceback", "")) <= _LARGE:
            self._broker.redactor.error(error)
        else:
            await to_thread.run_sync(self._broker.redactor.error, error)

    async def _dispatch(self, call: Call, _dispatch_id: str, op: str, params: Mapping[str, Any]) -> Any:
        return await self._broker.dispatch(call, op, params)

    def _is_fire_and_forget(self, op: str) -> bool:
        return self._broker.ops.is_fire_and_forget(op)

    def _log(self, logs: list[LogLine], on_log: Callable[[LogLine], None] | None, line: LogLine) -> None:
        clean = LogLine(line.stream, self._broker.redactor.text(line.text))
        _collect(logs, on_log, _LONGEST_LOGS, clean)

    async def _grant(
        self, skill: SkillSpec, digest: str, given: tuple[str, ...] | None
    ) -> tuple[Grant, Mapping[str, str]]:
        """The rights of a call and who gave each: what was given for it, else what was granted before, else now."""
        if given is not None:
            grant = await self._broker.ops.grant(given)
            return grant, dict.fromkeys(grant.texts(), "call")
        wanted = await self._wanted(skill)
        policy = await self._by_policy(skill)
        remembered = await self._broker.ops.grant(self._remembered.get(digest).texts())
        missing = _missing(wanted, policy, remembered)
        if missing:
            if self._asker is None or not await self._asker(skill, missing):
                raise GrantRequired(skill.name, missing.texts())
            self._remembered.remember(digest, skill.name, wanted)
        return wanted, _givers(wanted, policy, missing)

    async def _wanted(self, skill: SkillSpec) -> Grant:
        try:
            return await self._broker.ops.grant(skill.capabilities)
        except CapabilityInvalid as error:
            problem = f"the skill `{skill.name}` asks for what there is not: {error.message}"
            raise SkillError(problem, hint=f"correct `sideband.capabilities` in {skill.source / 'SKILL.md'}") from error

    async def _by_policy(self, skill: SkillSpec) -> Grant:
        grants = self._settings.settings.grants
        name = skill.key if skill.key in grants else skill.name
        try:
            return await self._broker.ops.grant(grants.get(name, ()))
        except CapabilityInvalid as error:
            source = self._settings.sources.get(("grants", name), "")
            raise ConfigurationError(f"grants.{name}", error.message, source=source, hint=error.hint) from error


# What follows from the rights alone is found out once: most calls of a skill have the same.


@lru_cache(maxsize=_MOST_RIGHTS)
def _missing(wanted: Grant, policy: Grant, remembered: Grant) -> Grant:
    return Grant.of([*policy.capabilities, *remembered.capabilities]).missing(wanted)


@lru_cache(maxsize=_MOST_RIGHTS)
def _givers(wanted: Grant, policy: Grant, asked: Grant) -> Mapping[str, str]:
    return MappingProxyType({str(one): _giver(one, policy, asked) for one in wanted.capabilities})


def _giver(capability: Capability, policy: Grant, asked: Grant) -> str:
    if policy.covers(Grant((capability,))):
        return "policy"
    return "person" if capability in asked.capabilities else "remembered"


def _blame_refusal(error: SidebandError, effects: list[EffectReport]) -> None:
    """Where a skill let the refusal of an effect pass, say so as the refusal itself would.

    Only what the host has recorded counts: a skill can't make its failure look like a refusal.
    """
    cause = error.__cause__
    if not isinstance(cause, OpError):
        return
    for effect in reversed(effects):
        if effect.error and (effect.op, effect.error["code"]) == (cause.op, cause.code):
            error.hint = effect.error["hint"] or error.hint
            if effect.status == "denied":
                error.exit_code = OpDenied.exit_code
            return


def _collect(collected: list[Any], listener: Callable[[Any], None] | None, longest: int, item: Any) -> None:
    if len(collected) < longest:
        collected.append(item)
    if listener is not None:
        listener(item)


def _validated(tool: ToolSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return tool.validate(arguments)
    except ValueError as error:
        raise ArgumentsInvalid(tool.full_name, str(error)) from None


def _note_isolation(call: Call, isolation: Isolation) -> None:
    call.isolation = isolation.label


def _domain(launch: LaunchRequest, grant: Grant, principal: str) -> str:
    packages = launch.packages.name if launch.packages else ""
    return _digest(launch.snapshot.name, packages, launch.limits.memory, grant, principal)


@lru_cache(maxsize=_MOST_RIGHTS)
def _digest(snapshot: str, packages: str, memory: int, grant: Grant, principal: str) -> str:
    parts = [snapshot, packages, str(memory), str(grant), principal]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _call_environment() -> dict[str, str]:
    return {"timezone": os.environ.get("TZ") or time.tzname[0], "locale": os.environ.get("LANG", "C.UTF-8")}
