"""Effects and results of calls, as text and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._tables import format_table
from ._words import describe_duration

if TYPE_CHECKING:
    from sideband import CallResult, EffectReport


def describe_effects(effects: tuple[EffectReport, ...]) -> str:
    """Format the effects of a call as a table."""
    rows = [
        [effect.id.rpartition("-")[2], effect.op, effect.status, f"{effect.ms:.1f}", effect.decision]
        for effect in effects
    ]
    return format_table(["#", "effect", "status", "ms", "decided by"], rows)


def effect_line(effect: str, op: str, status: str, ms: float) -> str:
    """Return a line with the id of an effect, for `audit why` and `undo`."""
    return f"  effect {effect}: {op} {status}, {describe_duration(ms / 1000)}"


def effect_data(effect: EffectReport) -> dict[str, Any]:
    """Return an effect as data."""
    return {
        "id": effect.id,
        "op": effect.op,
        "status": effect.status,
        "decision": effect.decision,
        "ms": effect.ms,
        "params": dict(effect.params),
        "error": effect.error,
    }


def result_data(result: CallResult) -> dict[str, Any]:
    """Return a result as data: ``output`` and everything known about the call."""
    return {
        "output": result.output,
        "tool": result.tool,
        "call": result.call,
        "isolation": result.isolation,
        "grant": list(result.grant),
        "effects": [effect_data(effect) for effect in result.effects],
        "logs": [{"stream": line.stream, "text": line.text} for line in result.logs],
        "ms": result.ms,
        "answered": list(result.answered),
        "skipped": list(result.skipped),
    }
