"""What `call`, `op` and `demo` show of a call while it runs and after it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ._hosting import is_interactive
from ._output import clean, format_table, notice

if TYPE_CHECKING:
    from sideband import CallResult, EffectReport
    from sideband.hooks import OpCall
    from sideband.loading import SkillSpec
    from sideband.ops import Grant

__all__ = ["approver", "ask_on_terminal", "describe_effects", "grant_asker", "result_data"]


def grant_asker(*, yes: bool) -> Any:
    """Who answers when a skill asks for rights: ``--yes``, the person at the terminal, or nobody."""
    if yes:
        return _grant_all
    return ask_on_terminal if is_interactive() else None


async def _grant_all(skill: SkillSpec, missing: Grant) -> bool:
    notice(f"granted to `{skill.name}`: {missing}")
    return True


async def ask_on_terminal(skill: SkillSpec, missing: Grant) -> bool:
    """Ask the person at the terminal."""
    notice(f"The skill `{skill.name}` ({skill.source}) asks for:")
    for capability in missing.texts():
        notice(f"  {capability}")
    return await _yes("Grant this, and remember it for this version of the skill? [y/N] ")


def approver() -> Any:
    """Who answers when a guard asks about an effect: the person at the terminal, or nobody."""
    return _approve if is_interactive() else None


async def _approve(question: str, effect: OpCall) -> bool:
    notice(f"{effect.op}: {question}")
    return await _yes("Allow it? [y/N] ")


async def _yes(question: str) -> bool:
    from anyio import to_thread

    # Not `input`, which would mix the question into a result that goes to a file or a pipe.
    sys.stderr.write(clean(question))
    sys.stderr.flush()
    answer = await to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    return answer.strip().lower() in ("y", "yes")


def describe_effects(effects: tuple[EffectReport, ...]) -> str:
    """The effects of a call as a table."""
    rows = [
        [effect.id.rpartition("-")[2], effect.op, effect.status, f"{effect.ms:.1f}", effect.decision]
        for effect in effects
    ]
    return format_table(["#", "effect", "status", "ms", "decided by"], rows)


def effect_data(effect: EffectReport) -> dict[str, Any]:
    """An effect as data."""
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
    """A result as data: ``output`` and everything that is known about the call."""
    return {
        "output": result.output,
        "tool": result.tool,
        "call": result.call,
        "isolation": result.isolation,
        "grant": list(result.grant),
        "effects": [effect_data(effect) for effect in result.effects],
        "logs": [{"stream": line.stream, "text": line.text} for line in result.logs],
        "ms": result.ms,
    }
