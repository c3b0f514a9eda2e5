"""Requests to call a skill's tool, and their results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from attrs import Factory, field, frozen

from ..broker import Attempt, CallProgress, EffectReport, TakeProgress
from ..contexts import Lease
from ..hooks import HookRegistry
from ..ops import Grant, Origin
from ..workers import LogLine


@frozen
class CallParent:
    """What a call inherits from the op that makes it.

    Attributes:
        effect: the effect of the call.
        deadline: its deadline, on the clock of ``anyio.current_time()``.
        depth: the number of calls within which it is made.
        lease: the context of the effect, after whose end the call causes no effects.
        limit: what the rights of the skill are narrowed to; ``None`` for all of them.
        holder: the id of the call whose rights these are, if they are narrowed; else empty.
    """

    effect: str
    deadline: float
    depth: int
    lease: Lease
    limit: Grant | None = None
    holder: str = ""


@frozen
class CallRequest:
    """A request to call a tool.

    Args:
        tool: ``skill.tool``.
        arguments: the arguments by name, validated with the tool's schema.
        grants: the capabilities of this call. ``None`` for the capabilities that the skill requests, if they were
            granted before, are granted by the policy, or the user grants them now.
        timeout: the timeout in seconds, including the wait for a worker; ``None`` for that of the tool, the skill or
            the policy.
        alone: whether the call gets its own worker, which ends with it. The skill or the policy can require that too.
        key: an idempotency key: another call with the same key does not repeat its effects, and gets the same start
            time, seed and answers to its reads; those over 32 KiB only until a call has succeeded.
        attempt: the attempt to run a call of an agent, which has a key and the record of earlier attempts.
        principal: the principal on whose behalf the call runs.
        on_progress: called with each ``ToolProgress`` of the call, one after the other; may be async. The call never
            waits for it while it runs: if it is slow, it misses progress, and is called with gaps.
        on_effect, on_log: called for each effect and log line; must not block.
        on_answer: called before each answer of an op; see ``Call``.
        origin: the session, run and step of the calling agent, if any; recorded with each effect.
        hooks: the hooks and guards of the calling agent; ``None`` for those of the host.
        progress: takes the progress of a call of an agent or of an op, instead of ``on_progress``.
        parent: what the call inherits from the op that makes it, if one does.
    """

    tool: str
    arguments: Mapping[str, Any] = Factory(dict)
    grants: tuple[str, ...] | None = None
    timeout: float | None = None
    alone: bool = False
    key: str | None = None
    principal: str = "user"
    on_progress: TakeProgress | None = field(default=None, repr=False)
    on_effect: Callable[[EffectReport], None] | None = field(default=None, repr=False)
    on_log: Callable[[LogLine], None] | None = field(default=None, repr=False)
    on_answer: Callable[[str, str, Any], Awaitable[None]] | None = field(default=None, repr=False)
    origin: Origin | None = None
    attempt: Attempt | None = field(default=None, repr=False)
    hooks: HookRegistry | None = field(default=None, repr=False)
    progress: CallProgress | None = field(default=None, repr=False)
    parent: CallParent | None = field(default=None, repr=False)


@frozen
class CallResult:
    """The result of a call.

    Attributes:
        output: the return value of the tool, redacted.
        tool: ``skill.tool``.
        call: the id of the call, which is also ``origin.run`` of its effects unless an agent made the call.
        isolation: the isolation tier of the worker.
        grant: the capabilities of the call.
        effects: the effects of the call, in the order in which they ended.
        answered: the ids of earlier effects with the same key whose recorded answer was used again.
        skipped: the ids of earlier effects with the same key that were not requested again. The code took another path.
        logs: the output of the skill to stdout and stderr.
        ms: the duration in milliseconds.
    """

    output: Any
    tool: str
    call: str
    isolation: str
    grant: tuple[str, ...]
    effects: tuple[EffectReport, ...]
    logs: tuple[LogLine, ...]
    ms: float
    answered: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
