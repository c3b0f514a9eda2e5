"""Run a tool of a skill: validate arguments, then determine limits, snapshot, rights and worker."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import anyio
from anyio import to_thread
from attrs import define, evolve, field

from ..approvals import ApprovalNeeded, Approver
from ..broker import Attempt, Broker, Call, CallProgress, EffectReport, delivered
from ..errors import SidebandError
from ..loading import SkillSpec, ToolSpec
from ..ops import Grant, OpDenied, OpError, Origin
from ..ops._from_host import with_host_values
from ..settings import Policy
from ..workers import ArgumentsInvalid, CodeChanged, GrantRequired, SkillFailed, SkillRefused, WorkerCall, WorkerPool
from ._call_plans import CallPlan, CallPlans, code_of
from ._catalog import SkillCatalog
from ._hints import hint
from ._isolation import ChosenSandbox
from ._keyed_attempts import Beginning, attempt_with_key, recorded_beginning
from ._launches import SkillLaunches
from ._limits import call_timeout
from ._requests import CallParent, CallRequest, CallResult
from ._rights import Rights
from ._running_call import RunningCall

# Checking and redacting larger data would block the event loop for too long.
_LARGE = 65_536
_CLOSING_SECONDS = 5.0


@define(eq=False, kw_only=True, repr=False)
class SkillCalls:
    """Runs tools of skills for a host."""

    _policy: Policy
    _catalog: SkillCatalog
    _launches: SkillLaunches
    _rights: Rights
    _broker: Broker
    _pool: WorkerPool
    _sandbox: ChosenSandbox
    _report: Callable[[Exception], object]
    _approver: Approver | None
    _running: set[str] = field(factory=set, init=False)
    _plans: CallPlans = field(factory=CallPlans, init=False)
    _quiet: anyio.Event | None = field(default=None, init=False)

    async def run(self, request: CallRequest) -> CallResult:
        """Run the tool that ``request`` names.

        Raises:
            CallError: if the call failed; the subclass identifies the cause.
            WorkerError: if the worker process failed.
        """
        skill, tool = await self._catalog.tool(request.tool)
        identifier = os.urandom(16).hex()
        origin = _origin(request, identifier, skill, tool)
        arguments = _validated(tool, with_host_values(tool.from_host, request.arguments, origin))
        timeout = call_timeout(self._policy, skill, tool, request.timeout)
        launch = await self._launches.of(skill)
        hooks = request.hooks
        try:
            grant, granted_by = await self._rights.of(
                skill,
                tool,
                launch.snapshot.name,
                arguments=arguments,
                origin=origin,
                approver=(hooks and hooks.approver) or self._approver,
                given=request.grants,
            )
        except GrantRequired as error:
            if request.attempt is not None and error.needed is not None:
                request.attempt.wait_for(error.needed)
            raise
        parent = request.parent
        if parent is not None and parent.limit is not None:
            grant = grant.narrow(parent.limit)
        plan = self._plans.of(request.tool, tool, launch, grant, request.principal)
        # Choosing a sandbox for the first call of a host does not count against the call's timeout.
        await self._sandbox.require()
        now = self._broker.clock()
        if parent is not None:
            timeout = min(timeout, max(0.0, parent.deadline - now))
        call = Call(
            id=identifier,
            grant=grant,
            granted_by=granted_by,
            domain=plan.domain,
            origin=origin,
            deadline=now + timeout,
            code=plan.code,
            progress=request.progress,
            on_answer=request.on_answer,
            hooks=hooks,
            ends_dispatches=True,
            **({} if parent is None else _inherited(identifier, parent)),
        )
        attempt, tape = request.attempt, self._broker.tape
        if request.key is not None and attempt is None and not (tape is not None and tape.replays):
            attempt = await attempt_with_key(self._broker, call, request.key)
        call.attempt = attempt
        begun: Attempt | Beginning | None = attempt
        if tape is not None:
            tape.enter(call, tool.full_name, arguments)
            begun = await recorded_beginning(self._broker, call, tool.full_name, arguments, attempt)
        if attempt is not None and attempt.stops and attempt.codes - {call.code}:
            raise CodeChanged(tool.full_name)
        running = RunningCall(call, self._broker, request.on_effect, request.on_log)
        worker_call = WorkerCall(
            id=identifier,
            tool=plan.name,
            domain=plan.domain,
            launch=launch,
            alone=request.alone or skill.alone or self._policy.alone,
            module=plan.module,
            function=tool.name,
            arguments=arguments,
            capabilities=plan.capabilities,
            environment=_environment(plan, begun),
            timeout=timeout,
            handler=running,
        )
        with nullcontext() if tape is None else tape.ending():
            if request.on_progress is None:
                result = await self._run(running, worker_call, plan)
            else:
                call.progress = CallProgress(identifier, request.tool, self._broker.redactor)
                async with delivered(call.progress, request.on_progress):
                    result = await self._run(running, worker_call, plan)
        # A call that failed may be repeated. An agent records the outcome of its call first.
        if request.attempt is None and attempt is not None:
            await self._broker.attempts.forget(attempt)
        return result

    async def missing(self, skill: SkillSpec) -> Grant:
        """Return the capabilities that a skill requests and was not granted, without asking for them.

        Raises:
            SidebandError: if the skill cannot be called, for instance because its packages are not installed.
        """
        launch = await self._launches.of(skill)
        return await self._rights.missing(skill, launch.snapshot.name)

    async def code(self, tool: str) -> str:
        """Return the version of a tool's skill: a digest of its code and packages."""
        skill, _ = await self._catalog.tool(tool)
        return code_of(await self._launches.of(skill))

    async def _run(self, running: RunningCall, worker_call: WorkerCall, plan: CallPlan) -> CallResult:
        started = time.perf_counter()
        call, tool = running.call, plan.tool
        self._running.add(call.id)
        # Its effects may share what an op keeps for it, such as a cursor.
        call.edition = edition = self._broker.ops.editions.current
        edition.users += 1
        try:
            answer = await self._pool.call(worker_call, call.deadline)
            if tool.validate_result is not None:
                await _apply(partial(_check_result, tool), answer.value, answer.size)
        except SidebandError as error:
            if isinstance(error, SkillFailed | SkillRefused):
                error.hint = hint(error.topic, tool.skill, self._launches.families) or error.hint
            _add_hint(error, running.effects)
            size = len(error.message) + len(getattr(error, "traceback", ""))
            await _apply(self._broker.redactor.error, error, size)
            raise
        finally:
            await call.end(self._report)
            edition.leave()
            self._running.remove(call.id)
            if self._quiet is not None:
                self._quiet.set()
        redact = self._broker.redactor.data
        output = redact(answer.value) if answer.size <= _LARGE else await to_thread.run_sync(redact, answer.value)
        return CallResult(
            output=output,
            tool=worker_call.tool,
            call=call.id,
            isolation=call.isolation,
            grant=plan.capabilities,
            effects=tuple(running.effects),
            logs=tuple(running.logs),
            ms=round((time.perf_counter() - started) * 1000, 3),
            answered=tuple(call.attempt.answered) if call.attempt else (),
            skipped=tuple(one.effect for one in call.attempt.skipped) if call.attempt else (),
        )

    async def finish(self) -> None:
        """Wait until ended calls have closed their resources, for at most 5 seconds."""
        with anyio.move_on_after(_CLOSING_SECONDS):
            while self._running:
                self._quiet = anyio.Event()
                await self._quiet.wait()


async def _apply(function: Callable[[Any], Any], data: Any, size: int) -> Any:
    """Call a function, in a thread if the data is large, so that the event loop is not blocked."""
    return function(data) if size <= _LARGE else await to_thread.run_sync(function, data)


def _add_hint(error: SidebandError, effects: Sequence[EffectReport]) -> None:
    """Use the hint of an effect's error that the skill did not catch, and the exit code if the effect was denied.

    Only recorded effects are used, so that a skill cannot make its own failure look like a denial.
    """
    cause = error.__cause__
    if not isinstance(cause, OpError):
        return
    for effect in reversed(effects):
        # The error of an op that failed in another one names the inner op, which the skill did not request.
        if effect.error and (effect.error.get("op", effect.op), effect.error["code"]) == (cause.op, cause.code):
            # An op fails if one that it dispatched was denied. The code of the skill is not at fault.
            if effect.status == "denied" or effect.error["code"] in (OpDenied.code, ApprovalNeeded.code):
                error.exit_code, error.hint = OpDenied.exit_code, ""
            error.hint = effect.error["hint"] or error.hint
            return


def _validated(tool: ToolSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return tool.validate(arguments)
    except ValueError as error:
        raise ArgumentsInvalid(tool.full_name, str(error)) from None


def _check_result(tool: ToolSpec, result: Any) -> None:
    try:
        tool.validate_result(result)  # type: ignore[misc]
    except ValueError as error:
        raise SkillRefused(
            f"{tool.full_name}: the result does not match its annotation: {error}",
            hint="change the return annotation of the function, or what it returns",
        ) from None


def _origin(request: CallRequest, call: str, skill: SkillSpec, tool: ToolSpec) -> Origin:
    if request.origin is None:
        return Origin(principal=request.principal, run=call, skill=skill.key, tool=tool.name)
    return evolve(request.origin, principal=request.principal, skill=skill.key, tool=tool.name)


def _inherited(identifier: str, parent: CallParent) -> dict[str, Any]:
    """Return what the broker's state of a call has of the op that makes it."""
    return {
        "outer": parent.lease,
        "depth": parent.depth + 1,
        "holder": parent.holder or identifier,
        "within": parent.effect,
    }


def _environment(plan: CallPlan, begun: Attempt | Beginning | None) -> Mapping[str, str]:
    if begun is None:
        return plan.environment
    return {**plan.environment, "started": begun.started, "seed": begun.seed}
