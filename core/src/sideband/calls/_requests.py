"""What can be said about a call of a skill's tool, and about its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import Factory, field, frozen

from ..broker import EffectReport, Progress
from ..hooks import HookRegistry
from ..ops import Origin
from ..workers import LogLine


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
