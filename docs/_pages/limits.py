"""What skills and agents can use up, at most."""

from __future__ import annotations

from inspect import signature

from sideband.providers import ANSWER_LIMITS
from sideband.settings import AgentSettings, Policy
from sideband.tools import RESULT_LIMITS, SCHEMA_LIMIT
from sideband.workers import WorkerLimits, WorkerPool
from sideband.workers._dispatching import _MAX_HELD, _MAX_IN_FLIGHT, _MAX_UNREAD
from sideband.workers._pending import MAX_DISPATCHES, MAX_IN_FLIGHT, MAX_LINES, MAX_TEXT
from sideband.workers._snapshots import _MAXIMUM_BYTES
from sideband.workers._watchdog import _IDLE_SECONDS
from sideband.workers._worker import _WATCH_SECONDS
from sideband.workers.runtime import MAX_FRAME, MAX_NESTING, MAX_VALUES
from sideband_agent._children import MOST_CHILDREN
from sideband_agent._compaction._compactor import _USUAL_WINDOW
from sideband_agent._model_steps._model_steps import _MOST_CALLS
from sideband_agent._tools._tool_effects import PLUGIN_TOOL_SECONDS

from .tables import paragraph, table

__all__ = ["limits_page"]


def limits_page() -> list[str]:
    """The lines of the page."""
    policy = Policy()
    return [
        "# Limits",
        "",
        *paragraph(
            "What a skill or an agent can use up at most, as it is if nobody sets anything else. The "
            "[policy](settings.md#policy) may be stricter or more generous. A skill may ask for other limits in its "
            f"metadata: `sideband.memory` up to {_bytes(policy.maximum_memory)}, `sideband.timeout` up to "
            f"{policy.maximum_timeout:g} s."
        ),
        "",
        "## A worker",
        "",
        f"The host looks every {_WATCH_SECONDS:g} s, and ends a worker that is over; its calls fail with the",
        "code. The kernel holds most of them by itself, earlier.",
        "",
        *_worker(policy),
        "",
        "## A call",
        "",
        *_call(policy),
        "",
        "## The host",
        "",
        *_host(policy),
        "",
        "## An agent",
        "",
        "`[agent]` of the [settings](settings.md#agent) changes the first five.",
        "",
        *_agent(AgentSettings()),
    ]


def _worker(policy: Policy) -> list[str]:
    limits = WorkerLimits()
    return list(
        table(
            ["what", "limit", "code"],
            [
                ["resident memory", _bytes(policy.memory), "`worker.memory`"],
                [
                    "address space, which the kernel refuses to exceed",
                    _bytes(limits.address_space),
                    "none: `MemoryError`",
                ],
                ["threads", f"{limits.threads}", "`worker.threads`"],
                ["open descriptors", f"{limits.files}", "`worker.files`"],
                ["written to its own output, past the runtime", _bytes(limits.output), "`worker.output`"],
                ["processor time while no call is in it", f"{_IDLE_SECONDS:g} s", "`worker.processor`"],
                ["time to be ready after its start", f"{_of_pool('start_timeout'):g} s", "`worker.start`"],
                ["time until it has read one message", f"{_of_pool('write_timeout'):g} s", "`worker.exited`"],
                ["time that one of its messages takes", f"{_of_pool('line_timeout'):g} s", "`worker.protocol`"],
                ["size of a message", _bytes(MAX_FRAME), "`worker.protocol`"],
                ["nesting of a message", f"{MAX_NESTING}", "`worker.protocol`"],
                ["values in a message", f"{MAX_VALUES:,}", "`worker.protocol`"],
            ],
        )
    )


def _call(policy: Policy) -> list[str]:
    return list(
        table(
            ["what", "limit", "what happens then"],
            [
                ["time, if neither skill nor tool nor caller names one", f"{policy.timeout:g} s", "`call.timeout`"],
                [
                    "time to end after it was cancelled",
                    f"{_of_pool('cancel_grace'):g} s",
                    "its worker is replaced",
                ],
                ["ops in flight", f"{MAX_IN_FLIGHT}", "`limit.in_flight`"],
                ["ops in all", f"{MAX_DISPATCHES:,}", "`limit.dispatches`"],
                ["lines of log that are kept", f"{MAX_LINES:,}", "the others are counted"],
                ["text of log that is kept", _bytes(MAX_TEXT), "the same"],
            ],
        )
    )


def _host(policy: Policy) -> list[str]:
    return list(
        table(
            ["what", "limit", "what happens then"],
            [
                ["workers at once", f"{policy.workers}", "calls wait; trust domains take turns"],
                ["time that an idle worker is kept", f"{policy.idle_seconds:g} s", "it is ended"],
                ["ops in flight of one worker", f"{_MAX_IN_FLIGHT}", "it is not read for now"],
                ["size of the ops in flight of one worker", _bytes(_MAX_HELD), "the same"],
                ["size of the answers that it has not read", _bytes(_MAX_UNREAD), "`limit.unread_bytes`"],
                ["size of a skill", _bytes(_MAXIMUM_BYTES), "it is not loaded"],
            ],
        )
    )


def _agent(settings: AgentSettings) -> list[str]:
    return list(
        table(
            ["what", "limit", "what happens then"],
            [
                ["model steps of a run", f"{settings.turns}", "it parks with `agent.turns`"],
                ["tool calls of one turn at the same time", f"{settings.parallel}", "the others wait"],
                ["time for a tool of a plugin that names none", f"{PLUGIN_TOOL_SECONDS:g} s", "the model is told"],
                ["agents below agents", f"{settings.depth}", "`agent.depth`"],
                [
                    "tokens of a result that a model sees",
                    f"{settings.output_tokens:,}",
                    "it sees head and tail; `output` reads the rest",
                ],
                ["children of one agent at the same time", f"{MOST_CHILDREN}", "the others wait"],
                ["characters of an answer", f"{ANSWER_LIMITS.characters:,}", "`provider.stream`"],
                ["tool calls in an answer", f"{ANSWER_LIMITS.calls}", "the model is told; the others are not run"],
                [
                    "characters of a call's arguments",
                    f"{ANSWER_LIMITS.arguments:,}, {ANSWER_LIMITS.values:,} values, {ANSWER_LIMITS.depth} levels",
                    "the model is told; the call is not run",
                ],
                ["characters of a tool's result", f"{RESULT_LIMITS.characters:,}", "the rest is left out"],
                [
                    "images in a tool's result",
                    f"{RESULT_LIMITS.images}, each {_bytes(RESULT_LIMITS.image)}",
                    "the others are left out",
                ],
                ["description and schema of a tool", f"{SCHEMA_LIMIT:,} characters", "it is left out, and named"],
                ["calls of one model in one step", f"{_MOST_CALLS}", "the next model of `fallbacks`, or the run fails"],
                [
                    "tokens of a conversation, if nobody knows the model's window",
                    f"{_USUAL_WINDOW:,}",
                    "it is compacted",
                ],
            ],
        )
    )


def _of_pool(name: str) -> float:
    return float(signature(WorkerPool).parameters[name].default)


def _bytes(count: int) -> str:
    return f"{count >> 20:,} MiB"
