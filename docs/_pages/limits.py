"""The page on limits: the resource limits of skills and agents."""

from __future__ import annotations

from inspect import signature

from sideband.broker import _progress as progress
from sideband.broker._progress_streams import FLUSH_BYTES, FLUSH_SECONDS
from sideband.calls import _skill_copies as copies
from sideband.calls._catalog import LOAD_SECONDS
from sideband.host import _tool_sources as sources
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
from sideband_agent._model_steps._model_steps import _MAX_CALLS
from sideband_agent._tools._tool_effects import PLUGIN_TOOL_SECONDS
from sideband_guard_limits.plugin import Config

from .tables import paragraph, table

__all__ = ["limits_page"]


def limits_page() -> list[str]:
    """Return the lines of the page."""
    policy = Policy()
    return [
        "# Limits",
        "",
        *paragraph(
            "The default resource limits of skills and agents. The [policy](settings.md#policy) can raise or lower "
            "them. A skill can request other limits in its metadata: `sideband.memory` up to "
            f"{_bytes(policy.maximum_memory)}, `sideband.timeout` up to {policy.maximum_timeout:g} s."
        ),
        "",
        "## Workers",
        "",
        *paragraph(
            f"The host checks workers every {_WATCH_SECONDS:g} s and ends a worker that exceeds a limit. Its calls "
            "fail with the code. The operating system enforces most of these limits itself, and earlier."
        ),
        "",
        *_worker(policy),
        "",
        "## Calls",
        "",
        *_call(policy),
        "",
        "## Effects",
        "",
        *paragraph(
            "The guard [guard-limits](../../plugins/guard-limits/README.md) counts the effects of each skill by "
            "[level](levels.md). One that exceeds a limit is denied (`op.denied`)."
        ),
        "",
        *_effects(),
        "",
        "## Host",
        "",
        *_host(policy),
        "",
        "## Agents",
        "",
        "The first five limits are set under `[agent]` in the [settings](settings.md#agent).",
        "",
        *_agent(AgentSettings()),
        "",
        "## Progress",
        "",
        "What waits for an observer of the [progress](../agents.md#progress-of-tools) of one call.",
        "",
        *_progress(),
        "",
        "## Tool sources",
        "",
        *_sources(),
        "",
        "## Skills from memory",
        "",
        "Loaders may return the files of skills from memory. A loader or skill that exceeds a limit is reported.",
        "",
        *_skill_files(),
    ]


def _skill_files() -> list[str]:
    return list(
        table(
            ["resource", "limit"],
            [
                ["time of one call of a loader", f"{LOAD_SECONDS:g} s"],
                ["skills of one loader", f"{copies.MAX_SKILLS:,}"],
                ["files of one skill", f"{copies.MAX_FILES:,}"],
                ["size of all files of one loader", _bytes(copies.MAX_BYTES)],
                ["length of a path", f"{copies.MAX_PATH} bytes"],
            ],
        )
    )


def _effects() -> list[str]:
    limits = Config().model_dump(exclude={"per"})
    return list(table(["level", "limit"], [[level.upper(), f"`{limit}`"] for level, limit in limits.items()]))


def _worker(policy: Policy) -> list[str]:
    limits = WorkerLimits()
    return list(
        table(
            ["resource", "limit", "code"],
            [
                ["resident memory", _bytes(policy.memory), "`worker.memory`"],
                [
                    "address space (enforced by the operating system)",
                    _bytes(limits.address_space),
                    "none; raises `MemoryError`",
                ],
                ["threads", f"{limits.threads}", "`worker.threads`"],
                ["open file descriptors", f"{limits.files}", "`worker.files`"],
                [
                    "output written directly to stdout and stderr, bypassing the runtime",
                    _bytes(limits.output),
                    "`worker.output`",
                ],
                ["processor time without a call", f"{_IDLE_SECONDS:g} s", "`worker.processor`"],
                ["time until it is ready", f"{_of_pool('start_timeout'):g} s", "`worker.start`"],
                ["time to read one message", f"{_of_pool('write_timeout'):g} s", "`worker.exited`"],
                ["time to send one message", f"{_of_pool('line_timeout'):g} s", "`worker.protocol`"],
                ["size of a message", _bytes(MAX_FRAME), "`worker.protocol`"],
                ["nesting depth of a message", f"{MAX_NESTING}", "`worker.protocol`"],
                ["values in a message", f"{MAX_VALUES:,}", "`worker.protocol`"],
            ],
        )
    )


def _call(policy: Policy) -> list[str]:
    return list(
        table(
            ["resource", "limit", "if exceeded"],
            [
                [
                    "time, unless the skill, tool or caller sets another limit",
                    f"{policy.timeout:g} s",
                    "`call.timeout`",
                ],
                [
                    "time to end after cancellation",
                    f"{_of_pool('cancel_grace'):g} s",
                    "its worker is replaced",
                ],
                ["concurrent ops", f"{MAX_IN_FLIGHT}", "`limit.in_flight`"],
                ["total ops", f"{MAX_DISPATCHES:,}", "`limit.dispatches`"],
                ["stored log lines", f"{MAX_LINES:,}", "further lines are only counted"],
                ["stored log text", _bytes(MAX_TEXT), "the same"],
            ],
        )
    )


def _host(policy: Policy) -> list[str]:
    return list(
        table(
            ["resource", "limit", "if exceeded"],
            [
                ["concurrent workers", f"{policy.workers}", "calls wait; trust domains take turns"],
                ["idle time of a worker", f"{policy.idle_seconds:g} s", "it is stopped"],
                [
                    "concurrent ops of one worker",
                    f"{_MAX_IN_FLIGHT}",
                    "the host stops reading from the worker until some have ended",
                ],
                ["size of the concurrent ops of one worker", _bytes(_MAX_HELD), "the same"],
                ["size of answers that a worker has not read", _bytes(_MAX_UNREAD), "`limit.unread_bytes`"],
                ["size of a skill", _bytes(_MAXIMUM_BYTES), "it is not loaded"],
            ],
        )
    )


def _progress() -> list[str]:
    return list(
        table(
            ["resource", "limit", "if exceeded"],
            [
                ["waiting output", _bytes(progress.MAX_WAITING_BYTES), "the oldest is dropped, and counted in a gap"],
                ["waiting reports", f"{progress.MAX_WAITING_REPORTS:,}", "the same"],
                ["streams of output", f"{progress.MAX_STREAMS}", "the others share the stream `other`"],
                ["characters per message of a report", f"{progress.MAX_MESSAGE:,}", "the rest is omitted"],
                ["output in one event", f"{FLUSH_BYTES:,} bytes", "it arrives in several events"],
                ["time for which output is collected", f"{FLUSH_SECONDS:g} s", "it is delivered"],
                [
                    "time of an observer for what waits when the call ends",
                    f"{progress.DRAIN_SECONDS:g} s",
                    "the rest is counted in gaps",
                ],
            ],
        )
    )


def _agent(settings: AgentSettings) -> list[str]:
    answer = ANSWER_LIMITS
    arguments = f"{answer.arguments:,} characters, {answer.values:,} values, {answer.depth} levels"
    return list(
        table(
            ["resource", "limit", "if exceeded"],
            [
                ["model steps per run", f"{settings.turns}", "the run parks with `agent.turns`"],
                ["concurrent tool calls per turn", f"{settings.parallel}", "the others wait"],
                [
                    "time for a plugin's tool that sets no timeout",
                    f"{PLUGIN_TOOL_SECONDS:g} s",
                    "the model gets an error",
                ],
                ["nesting depth of agents", f"{settings.depth}", "`agent.depth`"],
                [
                    "tokens per tool result that the model sees",
                    f"{settings.output_tokens:,}",
                    "the model sees the beginning and end; `output` reads the rest",
                ],
                ["concurrent children of one agent", f"{MOST_CHILDREN}", "the others wait"],
                ["characters per answer", f"{answer.characters:,}", "`provider.stream`"],
                [
                    "tool calls per answer",
                    f"{answer.calls}",
                    "the other calls are not run; the model gets errors",
                ],
                [
                    "arguments of a tool call",
                    arguments,
                    "the call is not run; the model gets an error",
                ],
                ["characters per tool result", f"{RESULT_LIMITS.characters:,}", "the rest is dropped"],
                [
                    "images per tool result",
                    f"{RESULT_LIMITS.images} of {_bytes(RESULT_LIMITS.image)} each",
                    "further images are dropped",
                ],
                [
                    "description and schema of a tool",
                    f"{SCHEMA_LIMIT:,} characters",
                    "the tool is left out, with a warning",
                ],
                [
                    "calls of one model per step",
                    f"{_MAX_CALLS}",
                    "the next model of `fallbacks` is used, or the run fails",
                ],
                [
                    "tokens of a conversation, if the model's context window is unknown",
                    f"{_USUAL_WINDOW:,}",
                    "it is compacted",
                ],
            ],
        )
    )


def _sources() -> list[str]:
    omitted = "the others are omitted, with a notice in `sideband doctor`"
    return list(
        table(
            ["resource", "limit", "if exceeded"],
            [
                ["tools of one source", f"{sources.MAX_TOOLS:,}", omitted],
                ["descriptions and schemas of one source", f"about {sources.MAX_CHARACTERS:,} characters", "the same"],
                ["time to open", f"{sources.OPEN_SECONDS:g} s", "it is closed"],
                ["time to list the tools", f"{sources.LIST_SECONDS:g} s", "they are listed again later"],
                ["listings", f"one in {sources.PAUSE:g} s", "announcements in between are one"],
                ["time to close", f"{sources.CLOSE_SECONDS:g} s", "it is cancelled"],
                [
                    "time to close all sources of a host or session",
                    f"{sources.CLOSE_ALL_SECONDS:g} s",
                    "the remaining ones are cancelled",
                ],
            ],
        )
    )


def _of_pool(name: str) -> float:
    return float(signature(WorkerPool).parameters[name].default)


def _bytes(count: int) -> str:
    return f"{count >> 20:,} MiB"
