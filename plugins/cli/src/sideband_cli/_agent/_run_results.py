"""How a run has ended, for people and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sideband.exit_codes import ExitCode

from .._terminal._printing import notice
from .._terminal._words import describe_moment, describe_usage

if TYPE_CHECKING:
    from sideband_agent import Agent, RunResult


def exit_code(result: RunResult) -> ExitCode:
    """What the command ends with: also where the run only waits, who made it wait is told."""
    waits_for_provider = result.status == "parked" and (result.error or {}).get("code", "").startswith("provider.")
    return ExitCode.UNAVAILABLE if waits_for_provider else result.exit_code


def result_line(result: RunResult, agent: Agent) -> dict[str, Any]:
    """The last line of ``--json``."""
    return {
        "event": "result",
        "status": result.status,
        "text": result.text,
        "run": result.run,
        "session": result.session,
        "model": agent.model,
        "usage": result.usage.model_dump(),
        "error": result.error,
        "resume_at": result.resume_at,
    }


def tell_end(result: RunResult, agent: Agent) -> None:
    """Tell on standard error how a run has ended, what it used, and where it is kept."""
    for line in describe_problem(result):
        notice(line)
    notice(f"{agent.model} · {describe_usage(result.usage)} · session {result.session}")


def describe_problem(result: RunResult, *, resume: str = "") -> list[str]:
    """Why a run has not done what it was asked, and how it can go on; nothing if it has.

    Args:
        result: what it came to.
        resume: what lets it go on; the command line if empty.
    """
    error = result.error or {}
    lines = []
    if error:
        lines.append(f"{_WORDS[result.status]}: {error.get('message', '')} [{error.get('code', '')}]")
    elif result.status != "completed":
        lines.append(f"{_WORDS[result.status]}")
    if hint := error.get("hint"):
        lines.append(f"hint: {hint}")
    if result.status in ("failed", "parked"):
        when = f"from {describe_moment(result.resume_at)} on " if result.resume_at else ""
        how = resume or f"sideband run --resume --session {result.session}"
        if error.get("code") in _OTHER_MODEL or error.get("kind") == "model_not_found":
            how = f"/model PROVIDER:MODEL, then {resume}" if resume else f"{how} --model PROVIDER:MODEL"
        if error.get("code") == "budget.spent":
            how += ", and a higher --max-cost or --max-tokens-total"
        lines.append(f"it can go on {when}with: {how}")
    return lines


_OTHER_MODEL = ("llm.model", "llm.provider", "llm.unable")  # it would end the same way again
_WORDS = {"completed": "done", "aborted": "aborted", "failed": "error", "parked": "parked"}
