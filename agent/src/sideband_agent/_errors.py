"""How a run, or what is asked of an agent, can fail.

SidebandError
└── AgentFailed                              agent.failed
    ├── AgentBusy(RuntimeError)              agent.busy        a run is under way
    ├── AgentClosed(RuntimeError)            agent.closed      it was not entered, or is left already
    ├── CallEnded(RuntimeError)              agent.call        the tool call that wants it has ended
    ├── InputEmpty(ValueError)               agent.input       there is nothing to begin a run with
    ├── ModelMissing(LookupError)            agent.model       no model is configured
    ├── StructureRefused(PermissionError)    agent.refused     a plugin keeps the user from switching or forking
    ├── DepthReached(RecursionError)         agent.depth       agents may not spawn agents any deeper
    ├── ToolsUnknown(LookupError)            agent.tools       a child can't have a tool that its parent lacks
    ├── RunHalted(PermissionError)           agent.halted      a guard ended the run
    ├── ModelFailed(RuntimeError)            code of the model call's failure
    └── RunParked(RuntimeError)              what it waits for; the run can go on later
        ├── BudgetSpent                      budget.spent
        └── CostUnknown                      budget.unpriced
OpDenied
└── ToolDenied                               tool.denied       a guard, or whoever it asked, is against a call
OpError
└── ToolRejected(ValueError)                 tool.rejected     a call can't be run as the model wrote it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sideband.broker import disapproval
from sideband.errors import SidebandError
from sideband.exit_codes import ExitCode
from sideband.hooks import Decision, Verdict
from sideband.ops import OpDenied, OpError


class AgentFailed(SidebandError):
    """Something that was asked of an agent can't be done, or was not."""

    code = "agent.failed"


class AgentBusy(AgentFailed, RuntimeError):
    """A run, or a compaction, is under way, and this needs an idle agent. Nothing has changed."""

    code = "agent.busy"

    def __init__(self, wish: str, phase: str) -> None:
        super().__init__(
            f"the agent can't {wish} now: it is in the phase {phase}",
            hint="wait for its end (`wait_for_idle`), end it (`abort`), or queue a message (`steer`, `follow_up`)",
            retryable=True,
        )


class AgentClosed(AgentFailed, RuntimeError):
    """The agent was not entered, or is left already."""

    code = "agent.closed"

    def __init__(self) -> None:
        super().__init__("the agent is not open", hint="use it inside `async with Agent(host) as agent:`")


class CallEnded(AgentFailed, RuntimeError):
    """What a tool has left running wants to do something for a call that has ended."""

    code = "agent.call"

    def __init__(self, tool: str, call: str) -> None:
        super().__init__(
            f"the call `{call}` of {tool or 'a tool'} has ended, and its rights with it",
            hint="do it before the tool returns, and wait for it",
        )


class InputEmpty(AgentFailed, ValueError):
    """There is neither text nor an attachment to begin a run with. No provider takes an empty message."""

    code = "agent.input"
    exit_code = ExitCode.USAGE

    def __init__(self) -> None:
        super().__init__("the input is empty", hint="say something, or attach an image")


class ModelMissing(AgentFailed, LookupError):
    """Nobody has said which model to use."""

    code = "agent.model"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self) -> None:
        super().__init__(
            "no model is configured",
            hint="name one with --model provider:model, SIDEBAND_AGENT__MODEL, or `model` under `[agent]` in "
            "sideband.toml; `sideband models list` shows what there is",
        )


class StructureRefused(AgentFailed, PermissionError):
    """A plugin keeps the user from leaving or forking the session now."""

    code = "agent.refused"
    exit_code = ExitCode.DENIED

    def __init__(self, wish: str, reason: str, plugin: str | None) -> None:
        super().__init__(
            f"the agent does not {wish}: {reason}",
            hint=f"the plugin `{plugin}` says so; do what it asks for, or deny it",
        )
        self.plugin = plugin


class DepthReached(AgentFailed, RecursionError):
    """Agents may not spawn agents any deeper."""

    code = "agent.depth"

    def __init__(self, depth: int) -> None:
        super().__init__(
            f"agents may spawn agents {depth} deep, and no deeper",
            hint="do the task in this agent, or raise `depth` under `[agent]`",
        )


class ToolsUnknown(AgentFailed, LookupError):
    """A child was to have tools that its parent may not call, or that there are not."""

    code = "agent.tools"

    def __init__(self, names: Sequence[str], known: Sequence[str]) -> None:
        super().__init__(
            f"there is no tool {', '.join(f'`{name}`' for name in names)} to hand on",
            hint=f"name some of: {', '.join(known) or 'none'}",
        )


class RunHalted(AgentFailed, PermissionError):
    """A guard ended the whole run."""

    code = "agent.halted"
    exit_code = ExitCode.DENIED

    def __init__(self, reason: str, plugin: str | None) -> None:
        super().__init__(
            f"the guard `{plugin}` ended the run: {reason}",
            hint="look at what was tried (`sideband sessions show`), and ask for it in another way",
        )
        self.plugin = plugin


class ModelFailed(AgentFailed, RuntimeError):
    """No model of the chain gave an answer. The session is as it was before the call, and the run can be resumed.

    Args:
        error: the last failure, as data.
        hint: what to do; what the failure itself says if empty.
        kind: the class of the failure, as the plugin that gave up calls it.
    """

    exit_code = ExitCode.UNAVAILABLE

    def __init__(
        self, error: Mapping[str, Any], *, hint: str = "", kind: str = "", exit_code: ExitCode = ExitCode.UNAVAILABLE
    ) -> None:
        super().__init__(
            str(error.get("message", "the model call failed")),
            hint=hint or str(error.get("hint", "")) or "go on with `--resume` once it is mended; nothing was lost",
            code=str(error.get("code", "")) or None,
        )
        self.kind = kind
        self.error = dict(error)
        self.exit_code = exit_code

    def as_dict(self) -> dict[str, Any]:
        """The error as data, with what the provider said."""
        return {**self.error, **super().as_dict(), **({"kind": self.kind} if self.kind else {})}


class RunParked(AgentFailed, RuntimeError):
    """The run waits for something, and can go on from where it stands.

    Args:
        message: what it waits for.
        until: when going on is worth trying, in seconds since 1970; ``None`` if nobody knows.
    """

    code = "agent.parked"

    def __init__(self, message: str, *, until: float | None = None, hint: str = "", code: str | None = None) -> None:
        super().__init__(message, hint=hint or "go on with `--resume` later; nothing was lost", code=code)
        self.until = until


class BudgetSpent(RunParked):
    """A part of the session's budget is spent."""

    code = "budget.spent"

    def __init__(self, what: str, limit: float, used: float) -> None:
        super().__init__(
            f"the budget of {limit:g} {what} is spent: {used:g} were used",
            hint=f"raise it (`{_KEYS.get(what, what)}` under `[agent.budget]`), and go on with --resume",
        )


class ToolDenied(OpDenied):
    """A guard does not let a tool run, or whoever was asked does not. Nothing was run.

    Args:
        tool: its name.
        decision: what the guards said.
        asked: whether there was somebody to ask, if they wanted that.
    """

    code = "tool.denied"

    def __init__(self, tool: str, decision: Decision, *, asked: bool = True) -> None:
        question = decision.question if decision.verdict is Verdict.ASK else None
        super().__init__(tool, decision.reason if question is None else question, plugin=decision.plugin)
        if question is None:
            self.message = f"{tool} was refused by `{decision.plugin}`: {self.reason}"
        else:
            self.message = f"{tool} was {disapproval(question, asked=asked)}"


class ToolRejected(OpError, ValueError):
    """A call names no tool that may be called, or its arguments don't fit. Nothing was run.

    Args:
        problem: what is wrong, and what the model can do about it.
    """

    code = "tool.rejected"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)


class CostUnknown(RunParked):
    """Money is limited, and a model was asked whose prices nobody knows: the limit would mean nothing."""

    code = "budget.unpriced"

    def __init__(self, limit: float) -> None:
        super().__init__(
            f"the budget of {limit:g} US dollars can't be held: the price of a model that was asked is not known",
            hint='say it, `"provider:model" = {input = …, output = …}` under `[plugins.llm.prices]`, or limit tokens '
            "instead of money; then go on with --resume",
        )


_KEYS = {"US dollars": "money", "tool calls": "calls"}
