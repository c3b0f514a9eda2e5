"""The result of a run, as text and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sideband.command_line import notice
from sideband.exit_codes import ExitCode

from .._terminal._words import describe_cost, describe_moment, describe_tokens, describe_usage

if TYPE_CHECKING:
    from sideband_agent import Agent, RunResult


def exit_code(result: RunResult) -> ExitCode:
    """Return the exit code for a run. One that is parked because of its provider counts as unavailable."""
    waits_for_provider = result.status == "parked" and (result.error or {}).get("code", "").startswith("provider.")
    return ExitCode.UNAVAILABLE if waits_for_provider else result.exit_code


def result_line(result: RunResult, agent: Agent) -> dict[str, Any]:
    """Return the last line of ``--json`` as data."""
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
        "requests": list(result.requests),
        "over_budget": {
            part: {"limit": limit, "used": used} for part, (limit, used) in agent.allowance.overruns().items()
        },
    }


def print_summary(result: RunResult, agent: Agent, *, quiet: bool = False) -> None:
    """Print the problem of a run, if any, and unless ``quiet`` its model, usage and session to standard error."""
    if result.exit_code is ExitCode.DENIED and result.status == "completed":
        notice("every tool call of this run was denied")
    for line in [*describe_problem(result), *describe_overruns(result, agent)]:
        notice(line)
    if not quiet:
        notice(f"{agent.model} · {describe_usage(result.usage)} · session {result.session}")


def describe_overruns(result: RunResult, agent: Agent) -> list[str]:
    """Return a line for each limit that a completed run exceeded. The cost of a call is known only after it."""
    if result.status != "completed":
        return []
    lines = [
        f"over budget: {_amount(part, used)} of {_amount(part, limit)} used by this session, which makes no further "
        f"model call unless you raise {_LIMITS[part]}"
        for part, (limit, used) in agent.allowance.overruns().items()
    ]
    if agent.allowance.limit.money is not None and agent.allowance.has_unpriced:
        unknown = "the limit of the cost was not checked: the price of a model is unknown"
        lines.append(f"{unknown}; set it under `[plugins.llm.prices]`, or limit tokens instead")
    return lines


def describe_problem(result: RunResult, *, resume: str = "") -> list[str]:
    """Return lines that explain why a run did not complete and how to resume it; none if it completed.

    Args:
        result: the result of the run.
        resume: how to resume it; empty for a command line.
    """
    error = result.error or {}
    lines = []
    if error:
        lines.append(f"{_WORDS[result.status]}: {error.get('message', '')} [{error.get('code', '')}]")
    elif result.status != "completed":
        lines.append(f"{_WORDS[result.status]}")
    if hint := error.get("hint"):
        lines.append(f"hint: {hint}")
    if result.status == "aborted" and not resume:
        lines.append(f'to continue: sideband run --session {result.session} "…"')
    if result.status in ("failed", "parked"):
        when = f" after {describe_moment(result.resume_at)}" if result.resume_at else ""
        how = resume or f"sideband run --resume --session {result.session}"
        if error.get("code") in _OTHER_MODEL or error.get("kind") == "model_not_found":
            how = f"/model PROVIDER:MODEL, then {resume}" if resume else f"{how} --model PROVIDER:MODEL"
        lines.append(f"to resume this run{when}: {how}")
    return lines


def _amount(part: str, amount: float) -> str:
    if part == "money":
        return describe_cost(amount)
    return f"{describe_tokens(round(amount))} tokens" if part == "tokens" else f"{amount:g} {part}"


_LIMITS = {
    "money": "--max-cost",
    "tokens": "--max-tokens-total",
    "calls": "`calls` under [agent.budget]",
    "seconds": "`seconds` under [agent.budget]",
}
_OTHER_MODEL = ("llm.model", "llm.provider", "llm.unable")  # the same model would fail again
_WORDS = {"completed": "done", "aborted": "aborted", "failed": "error", "parked": "parked"}
