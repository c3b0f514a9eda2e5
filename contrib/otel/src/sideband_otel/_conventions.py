"""The names of spans, attributes and metrics.

Those that begin with ``gen_ai.`` are of the semantic conventions of OpenTelemetry, version 1.41. It is the last version
before the conventions for generative AI moved to a repository of their own, which has given the metrics other names.
Those that begin with ``sideband.`` are our own. Nothing else in this package names an attribute.

Attributes are made of the fields that are listed here: names, ids, numbers and codes. Parameters, results, texts, the
paths and queries of URLs, and messages of errors are never among them. What skills and models write instead of a name,
such as an op that does not exist or parameters that were rejected, is not among them either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from sideband.hooks import AgentStart, ApprovalEnd, Effect, WorkerEnd
from sideband.ops import Origin

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.41.0"

OPERATION_DURATION: Final = "gen_ai.client.operation.duration"
TOKEN_USAGE: Final = "gen_ai.client.token.usage"  # noqa: S105  the name of a metric
COST: Final = "sideband.model.cost"
RUN_DURATION: Final = "sideband.run.duration"
RUNS_ACTIVE: Final = "sideband.run.active"
TURN_DURATION: Final = "sideband.turn.duration"
EFFECT_DURATION: Final = "sideband.effect.duration"
TOOL_DURATION: Final = "sideband.tool.duration"
APPROVAL_DURATION: Final = "sideband.approval.duration"
WORKERS_ACTIVE: Final = "sideband.worker.active"
WORKER_START_DURATION: Final = "sideband.worker.start.duration"
WORKERS_ENDED: Final = "sideband.worker.ended"

DURATION_BUCKETS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKEN_BUCKETS: Final = tuple(4**power for power in range(14))

ERROR_TYPE: Final = "error.type"
OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105  the name of an attribute
TOOL: Final = "gen_ai.tool.name"
OP: Final = "sideband.op"
STATUS: Final = "sideband.status"
LEVEL: Final = "sideband.level"
ISOLATION: Final = "sideband.isolation"
ABOUT: Final = "sideband.approval.about"
VERDICT: Final = "sideband.approval.verdict"

TOOL_CALL: Final = "tool.call"
"""The op that runs the tools of an agent."""
MODEL_CALLS: Final = {"llm.generate": "chat", "llm.embed": "embeddings"}
"""The names of operations by the ops that call a model."""
APPROVAL_NEEDED: Final = "approval.needed"
_NO_SUCH_OP = "op.unknown"

Attribute = str | int | float | tuple[str, ...]
Attributes = dict[str, Attribute]

_MOST_CHARACTERS = 200
_MOST = 2**63 - 1
_UNKNOWN = "unknown"
_OTHER = "_OTHER"
_CODE = re.compile(r"[A-Za-z0-9_.:/-]{1,100}")
_FINISH_REASONS = {"end": "stop", "tool_calls": "tool_call", "length": "length", "refusal": "content_filter"}
_PORTS = {"http": 80, "https": 443}
_THINKING = ("off", "low", "medium", "high")


def plain(text: object) -> str:
    """Return a name in one line of at most 200 printable characters. Names may be those of models and skills."""
    shown = str(text)[:_MOST_CHARACTERS]
    if shown.isprintable():
        return shown
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in shown)


def known(found: Mapping[str, Attribute | None]) -> Attributes:
    """Return the attributes that have a value that can be sent, with plain texts."""
    return {
        name: plain(value) if isinstance(value, str) else value
        for name, value in found.items()
        if value is not None and value != "" and not (isinstance(value, int | float) and number(value) is None)
    }


def number(value: Any) -> int | float | None:
    """Return a finite number of at most 64 bits, or ``None`` if it is something else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and -_MOST <= value <= _MOST else None  # NaN is not between them


def code(value: object) -> str | None:
    """Return a code or an id, or ``None`` if it is something else, such as a text."""
    return value if isinstance(value, str) and _CODE.fullmatch(value) else None


def of_run(event: AgentStart, session: str | None) -> Attributes:
    """Return the attributes of a run that begins."""
    return known(
        {
            OPERATION: "invoke_agent",
            "gen_ai.conversation.id": session,
            "sideband.run.id": event.run,
            "sideband.run.source": event.source,
        }
    )


def of_usage(usage: Any) -> Attributes:
    """Return the attributes of the usage of model calls. Cached tokens are a part of the input tokens."""
    if not isinstance(usage, Mapping):
        return {}
    return known(
        {
            "gen_ai.usage.input_tokens": input_tokens(usage),
            "gen_ai.usage.output_tokens": count(usage, "output"),
            "gen_ai.usage.cache_read.input_tokens": count(usage, "cache_read"),
            "gen_ai.usage.cache_creation.input_tokens": count(usage, "cache_write"),
            "gen_ai.usage.reasoning.output_tokens": count(usage, "reasoning"),
            "sideband.usage.cost": cost_of(usage),
        }
    )


def count(usage: Mapping[str, Any], name: str) -> int:
    """Return a number of tokens."""
    found = number(usage.get(name))
    return max(0, int(found or 0))


def input_tokens(usage: Mapping[str, Any]) -> int:
    """Return the number of all input tokens."""
    return count(usage, "input") + count(usage, "cache_read") + count(usage, "cache_write")


def cost_of(usage: Mapping[str, Any]) -> float | None:
    """Return the cost in US dollars, if it is known."""
    found = number(usage.get("cost"))
    return None if found is None or found < 0 else float(found)


def of_effect(event: Effect) -> Attributes:
    """Return the attributes of any effect."""
    return known(
        {
            OP: op_of(event),
            STATUS: event.status,
            LEVEL: level_of(event.level),
            ERROR_TYPE: error_type(event),
            "sideband.effect.id": event.effect,
            "sideband.effect.bytes": event.bytes,
            ISOLATION: event.isolation,
            **of_origin(event.origin),
        }
    )


def of_origin(origin: Origin) -> dict[str, Attribute | None]:
    """Return the attributes of a caller."""
    return {
        "gen_ai.conversation.id": origin.session,
        "sideband.run.id": origin.run,
        "sideband.step": origin.step,
        "sideband.skill": origin.skill,
        "sideband.tool": origin.tool,
        "sideband.plugin": origin.plugin,
    }


def of_model_call(event: Effect) -> Attributes:
    """Return the attributes of a model call besides those of any effect."""
    params = event.params if _was_allowed(event) else {}
    requested, responded = params.get("model"), event.result.get("model")
    stop, thinking = code(event.result.get("stop")), params.get("thinking")
    return known(
        {
            OPERATION: MODEL_CALLS[event.op],
            PROVIDER: provider_of(responded) or provider_of(requested),
            REQUEST_MODEL: model_of(requested),
            RESPONSE_MODEL: model_of(responded),
            "gen_ai.response.finish_reasons": (_FINISH_REASONS.get(stop, stop),) if stop else None,
            "gen_ai.request.max_tokens": number(params.get("max_tokens")),
            "gen_ai.request.temperature": number(params.get("temperature")),
            "sideband.request.thinking": thinking if thinking in _THINKING else None,
            **of_usage(event.result.get("usage")),
        }
    )


def of_tool_call(event: Effect) -> Attributes:
    """Return the attributes of a tool call besides those of any effect."""
    return known(
        {
            OPERATION: "execute_tool",
            TOOL: tool_of(event),
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": code(event.params.get("call")),
        }
    )


def of_receiver(event: Effect) -> Attributes:
    """Return the attributes of the receiver of an HTTP request that was allowed."""
    url = event.params.get("url")
    if not event.op.startswith("http.") or not _was_allowed(event) or not isinstance(url, str):
        return {}
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return {}
    return known({"server.address": parts.hostname, "server.port": port, "url.scheme": parts.scheme})


def of_approval(event: ApprovalEnd) -> Attributes:
    """Return the attributes of a request for approval that has ended."""
    return known(
        {
            ABOUT: event.about,
            VERDICT: event.verdict,
            LEVEL: level_of(event.level),
            "sideband.approval.request": event.request,
            "sideband.approval.subject": event.subject,
            "sideband.approval.scope": event.scope if event.verdict == "allow" else None,
            **of_origin(event.origin),
        }
    )


def of_worker(event: WorkerEnd) -> Attributes:
    """Return the attributes of a worker that has ended."""
    return known(
        {
            ISOLATION: event.isolation,
            STATUS: event.status,
            ERROR_TYPE: event.code,
            "sideband.worker.number": event.worker,
            "sideband.worker.domain": event.domain,
        }
    )


def error_type(event: Effect) -> str | None:
    """Return the code of the error of an effect, if it has one."""
    return code_of(event.error) if event.error else None


def code_of(error: Mapping[str, Any]) -> str:
    """Return the code of an error."""
    return code(error.get("code")) or _OTHER


def op_of(event: Effect) -> str:
    """Return the name of an op, or ``unknown`` if there is no such op: its name is what the caller wrote."""
    return _UNKNOWN if error_type(event) == _NO_SUCH_OP else plain(event.op)


def _was_allowed(event: Effect) -> bool:
    """Return whether an effect was allowed, and so had valid parameters."""
    return bool(event.grant) and event.status != "denied"


def level_of(level: Any) -> str | None:
    """Return the name of a level."""
    return None if level is None else str(level.name).lower()


def tool_of(event: Effect) -> str:
    """Return the name of the tool of a tool call, or ``unknown`` if there is no such tool: a model wrote its name."""
    return plain(event.origin.tool or _UNKNOWN)


def provider_of(model: Any) -> str | None:
    """Return the name of the provider of a model."""
    provider, colon, _ = model.partition(":") if isinstance(model, str) else ("", "", "")
    return provider if colon else None


def model_of(model: Any) -> str | None:
    """Return the name of a model without that of its provider."""
    return (model.partition(":")[2] or model) if isinstance(model, str) else None
