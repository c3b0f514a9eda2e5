"""Errors of runs and of agents.

SidebandError
└── AgentFailed                              agent.failed
    ├── AgentBusy(RuntimeError)              agent.busy        another operation is in progress
    ├── AgentClosed(RuntimeError)            agent.closed      the agent was not entered, or has been closed
    ├── CallEnded(RuntimeError)              agent.call        the tool call of the caller has ended
    ├── InputEmpty(ValueError)               agent.input       the input of a run is empty
    ├── ModelMissing(LookupError)            agent.model       no model is configured
    ├── StructureRefused(PermissionError)    agent.refused     a plugin denies leaving, forking or rewinding the session
    ├── ThinkingUnknown(ValueError)          agent.thinking    the level of thinking does not exist
    ├── ApprovalModeUnknown(ValueError)      agent.mode        the approval mode does not exist
    ├── ApprovalModeUnavailable(LookupError) agent.modes       there is no guard that has approval modes
    ├── GoalInvalid(ValueError)              agent.goal        the goal or its status is invalid
    ├── RunUnfinished(RuntimeError)          agent.unfinished  the last run has tool calls without results
    ├── DepthReached(RecursionError)         agent.depth       the maximum depth of child agents is reached
    ├── ToolsUnknown(LookupError)            agent.tools       the parent does not have a tool requested for a child
    ├── ToolRefused(ValueError)              agent.tool        a tool or a source of tools cannot be offered
    ├── RunHalted(PermissionError)           agent.halted      a guard halted the run
    ├── AskerMissing(RuntimeError)           agent.asker       no user can be asked
    ├── ModelFailed(RuntimeError)            the code of the failed model call
    └── RunParked(RuntimeError)              agent.parked or the code of its cause; the run can be resumed later
        ├── ApprovalAwaited                  approval.needed   a person must approve what the run is about to do
        ├── BudgetSpent                      budget.spent
        └── CostUnknown                      budget.unpriced
OpDenied
└── ToolDenied                               tool.denied       a guard or the approver denied a tool call
OpError
└── ToolRejected(ValueError)                 tool.rejected     the call has an unknown tool or invalid arguments
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sideband.approvals import ApprovalNeeded, StoredApproval
from sideband.broker import refusal
from sideband.errors import SidebandError
from sideband.exit_codes import ExitCode
from sideband.hooks import Decision
from sideband.ops import OpDenied, OpError


class AgentFailed(SidebandError):
    """A request to an agent failed or was denied."""

    code = "agent.failed"


class AgentBusy(AgentFailed, RuntimeError):
    """The operation needs an idle agent, but a run or a compaction is in progress. Nothing has changed."""

    code = "agent.busy"

    def __init__(self, action: str, phase: str) -> None:
        super().__init__(
            f"the agent cannot {action}: it is busy (phase `{phase}`)",
            hint="wait until it is idle (`wait_for_idle`), cancel the run (`abort`), or queue a message (`steer`, "
            "`follow_up`)",
            retryable=True,
        )


class AgentClosed(AgentFailed, RuntimeError):
    """The agent was not entered, or has been closed."""

    code = "agent.closed"

    def __init__(self) -> None:
        super().__init__("the agent is not open", hint="use it inside `async with Agent(host) as agent:`")


class CallEnded(AgentFailed, RuntimeError):
    """A task that a tool left running uses the context of a call that has ended."""

    code = "agent.call"

    def __init__(self, tool: str, call: str) -> None:
        super().__init__(
            f"the call `{call}` of {tool or 'a tool'} has ended and its context cannot be used any more",
            hint="wait for all tasks before the tool returns",
        )


class InputEmpty(AgentFailed, ValueError):
    """The input has neither text nor an attachment. Providers reject empty messages."""

    code = "agent.input"
    exit_code = ExitCode.USAGE

    def __init__(self) -> None:
        super().__init__("the input is empty", hint="enter text or attach a file")


class AttachmentRefused(AgentFailed, ValueError):
    """An attachment cannot be sent: it contains a secret, or its type is unknown."""

    code = "agent.attachment"
    exit_code = ExitCode.USAGE

    def __init__(self, what: str, problem: str, *, hint: str) -> None:
        super().__init__(f"cannot attach {what}: {problem}", hint=hint)


class AskerMissing(AgentFailed, RuntimeError):
    """A tool wants to ask the user, but the agent was opened without a way to do so."""

    code = "agent.asker"

    def __init__(self) -> None:
        super().__init__(
            "no user can be asked",
            hint="decide without an answer, or end with the open questions; programs pass `asker` to `Agent`",
        )


class ModelMissing(AgentFailed, LookupError):
    """No model is configured."""

    code = "agent.model"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self) -> None:
        super().__init__(
            "no model is configured",
            hint="set --model provider:model, SIDEBAND_AGENT__MODEL, or `model` under `[agent]` in sideband.toml; "
            "`sideband models list` shows the available models",
        )


class StructureRefused(AgentFailed, PermissionError):
    """A plugin denied leaving, forking or rewinding the session."""

    code = "agent.refused"
    exit_code = ExitCode.DENIED

    def __init__(self, action: str, reason: str, plugin: str | None) -> None:
        super().__init__(
            f"cannot {action}: {reason}",
            hint=f"the plugin `{plugin}` denied it; follow its message, or disable the plugin in `[policy.deny]`",
        )
        self.plugin = plugin


class ThinkingUnknown(AgentFailed, ValueError):
    """The level of thinking does not exist."""

    code = "agent.thinking"

    def __init__(self, level: str, levels: Sequence[str]) -> None:
        super().__init__(f"unknown level of thinking: `{level}`", hint=f"use one of {', '.join(levels)}")


class ApprovalModeUnknown(AgentFailed, ValueError):
    """The approval mode does not exist."""

    code = "agent.mode"
    exit_code = ExitCode.USAGE

    def __init__(self, mode: str, modes: Sequence[str]) -> None:
        super().__init__(f"unknown approval mode: `{mode}`", hint=f"use one of {', '.join(modes)}")


class ApprovalModeUnavailable(AgentFailed, LookupError):
    """No guard has approval modes, so the mode would have no effect. It was not selected."""

    code = "agent.modes"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, mode: str) -> None:
        super().__init__(
            f"the approval mode `{mode}` would have no effect: no guard has approval modes",
            hint="install sideband-guard-approval, or enable its guard `approval`",
        )


class GoalInvalid(AgentFailed, ValueError):
    """The goal is empty or too long, or its status is invalid."""

    code = "agent.goal"

    def __init__(self, problem: str) -> None:
        super().__init__(problem, hint="state in a few sentences what to achieve; put details into a message")


class RunUnfinished(AgentFailed, RuntimeError):
    """The last run has tool calls without results, so nothing can be added to the conversation. Nothing has changed."""

    code = "agent.unfinished"

    def __init__(self, action: str) -> None:
        super().__init__(
            f"the agent cannot {action}: the last run has tool calls without results",
            hint="continue the run (`resume`) or begin another one, or exclude the program from the context",
        )


class DepthReached(AgentFailed, RecursionError):
    """The maximum depth of child agents is reached."""

    code = "agent.depth"

    def __init__(self, depth: int) -> None:
        super().__init__(
            f"child agents exceed the maximum depth of {depth}",
            hint="do the task in this agent, or raise `depth` under `[agent]`",
        )


class ToolsUnknown(AgentFailed, LookupError):
    """The tools requested for a child are unknown or not available to its parent."""

    code = "agent.tools"

    def __init__(self, names: Sequence[str], known: Sequence[str]) -> None:
        super().__init__(
            f"unknown tool for the child agent: {', '.join(f'`{name}`' for name in names)}",
            hint=f"available tools: {', '.join(known) or 'none'}",
        )


class ToolRefused(AgentFailed, ValueError):
    """A tool or a source of tools cannot be offered to the agent. Nothing has changed."""

    code = "agent.tool"


class RunHalted(AgentFailed, PermissionError):
    """A guard halted the run."""

    code = "agent.halted"
    exit_code = ExitCode.DENIED

    def __init__(self, reason: str, plugin: str | None) -> None:
        super().__init__(
            f"the guard `{plugin}` halted the run: {reason}",
            hint="check what the agent tried (`sideband sessions show`), then rephrase the request",
        )
        self.plugin = plugin


class ModelFailed(AgentFailed, RuntimeError):
    """No model of the fallback chain answered. The session is unchanged by the call, and the run can be resumed.

    Args:
        error: the last failure, as data.
        hint: what to do; by default the hint of the failure.
        kind: the class of the failure, as named by the plugin that gave up.
    """

    exit_code = ExitCode.UNAVAILABLE

    def __init__(
        self, error: Mapping[str, Any], *, hint: str = "", kind: str = "", exit_code: ExitCode = ExitCode.UNAVAILABLE
    ) -> None:
        super().__init__(
            str(error.get("message", "the model call failed")),
            hint=hint or str(error.get("hint", "")) or "fix the cause, then continue with `--resume`; nothing was lost",
            code=str(error.get("code", "")) or None,
        )
        self.kind = kind
        self.error = dict(error)
        self.exit_code = exit_code

    def as_dict(self) -> dict[str, Any]:
        """Return the error as data, including the provider's error."""
        return {**self.error, **super().as_dict(), **({"kind": self.kind} if self.kind else {})}


class RunParked(AgentFailed, RuntimeError):
    """The run is waiting for something and can be resumed from its last step.

    Args:
        message: what it waits for.
        until: when to resume it, in seconds since 1970; ``None`` if unknown.
    """

    code = "agent.parked"

    def __init__(self, message: str, *, until: float | None = None, hint: str = "", code: str | None = None) -> None:
        super().__init__(message, hint=hint or "continue with `--resume` later; nothing was lost", code=code)
        self.until = until


class ApprovalAwaited(RunParked):
    """The run needs approvals, and no approver is available. Their requests are stored until the run is cancelled.

    Args:
        needed: the approvals.
    """

    code = "approval.needed"
    exit_code = ExitCode.DENIED

    def __init__(self, needed: Sequence[ApprovalNeeded]) -> None:
        self.requests = tuple(dict.fromkeys(one.request.id for one in needed))
        others = len(self.requests) - 1
        more = f" (and {others} more, see `sideband approvals list`)" if others else ""
        super().__init__(
            f"the run waits for approval of {needed[0].request.subject}: {needed[0].request.question}{more}",
            hint=needed[0].hint,
        )


class BudgetSpent(RunParked):
    """A part of the session's budget is used up."""

    code = "budget.spent"

    def __init__(self, what: str, limit: float, used: float) -> None:
        super().__init__(
            f"the budget of {limit:g} {what} is used up: {used:g} used",
            hint=f"raise {_LIMITS.get(what, f'`{what}` under `[agent.budget]`')}, then continue with --resume",
        )


class ToolDenied(OpDenied):
    """A guard or the approver denied a tool call. The tool did not run.

    Args:
        tool: the name of the tool.
        decision: the decision of the guards.
        answer: the answer of the approver, if the guards required approval.
    """

    code = "tool.denied"

    def __init__(self, tool: str, decision: Decision, answer: StoredApproval | None = None) -> None:
        reason = decision.reason if answer is None else refusal(answer)
        super().__init__(tool, reason, hint=decision.hint, plugin=decision.plugin)
        self.message += f"; {decision.hint}" if decision.hint else ""


class ToolRejected(OpError, ValueError):
    """A call names a tool that is not available, or its arguments are invalid. The tool did not run.

    Args:
        problem: what is wrong, and how the model can correct it.
    """

    code = "tool.rejected"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)


class CostUnknown(RunParked):
    """Money is limited, but a model with unknown prices was used, so the limit cannot be enforced."""

    code = "budget.unpriced"

    def __init__(self, limit: float) -> None:
        super().__init__(
            f"the budget of {limit:g} US dollars cannot be enforced: the prices of a model that was used are unknown",
            hint='set `"provider:model" = {input = …, output = …}` under `[plugins.llm.prices]`, or limit tokens '
            "instead of money; then continue with --resume",
        )


_LIMITS = {
    "US dollars": "`money` under `[agent.budget]`, or --max-cost if that set it",
    "tokens": "`tokens` under `[agent.budget]`, or --max-tokens-total if that set it",
    "tool calls": "`calls` under `[agent.budget]`",
}
