"""The table ``[agent]``: models, limits, budget and compaction."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

ThinkingLevel = Literal["off", "low", "medium", "high"]
"""How much a model thinks before it answers."""

_Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class CompactionSettings(_Table):
    """The table ``[agent.compaction]``. The defaults are those of pi."""

    enabled: bool = Field(default=True, description="whether to compact long conversations automatically")
    reserve: int = Field(default=16_384, ge=0, description="tokens of the context window reserved for the answer")
    percent: float | None = Field(
        default=None, gt=0, le=100, description="compact at this percentage of the window instead of at `reserve`"
    )
    keep: int = Field(default=20_000, ge=0, description="tokens of the newest messages that are kept unchanged")


class BudgetSettings(_Table):
    """The table ``[agent.budget]``: the budget of a session, including its child agents. Missing keys mean no limit."""

    money: _Amount | None = Field(default=None, description="the maximum cost in US dollars")
    tokens: int | None = Field(default=None, gt=0, description="the maximum number of input and output tokens")
    calls: int | None = Field(default=None, gt=0, description="the maximum number of tool calls")
    seconds: _Amount | None = Field(default=None, description="the maximum time that runs take, in seconds")


class AgentSettings(_Table):
    """The table ``[agent]``.

    Attributes:
        compaction: the table ``[agent.compaction]``.
        budget: the table ``[agent.budget]``.

    Example:
        >>> AgentSettings(model="anthropic:claude-sonnet-4-5").compaction.reserve
        16384
    """

    model: str | None = Field(default=None, description="the model to use, as provider:model")
    fallbacks: list[str] = Field(default_factory=list, description="models to try, in order, if `model` fails")
    thinking: ThinkingLevel | None = Field(
        default=None, description="the reasoning effort of the model; by default, the provider decides"
    )
    max_tokens: int | None = Field(default=None, gt=0, description="the maximum number of output tokens of an answer")
    context_window: int | None = Field(
        default=None, gt=0, description="the context window in tokens, if the provider reports none or a wrong one"
    )
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="the sampling temperature; by default, the provider decides"
    )
    tools: list[str] | None = Field(default=None, description="the tools that agents may call; by default all")
    parallel: int = Field(default=10, ge=1, le=100, description="the maximum number of concurrent tool calls in a turn")
    turns: int = Field(default=200, ge=1, description="the maximum number of turns in a run, after which it parks")
    rounds: int = Field(
        default=2, ge=0, le=100, description="the maximum number of further rounds that plugins may request in a run"
    )
    depth: int = Field(default=3, ge=0, le=10, description="the maximum nesting depth of child agents")
    steering: Literal["all", "one"] = Field(
        default="all", description="how many of the queued messages the model sees before its next step"
    )
    follow_ups: Literal["one", "all"] = Field(
        default="one", description="how many of the queued inputs begin the next run; `all` joins those of one source"
    )
    tool_seconds: _Amount | None = Field(
        default=None,
        description="the timeout in seconds of tools without a timeout of their own; by default `[policy] timeout` for "
        "tools of skills, and 600 for tools of plugins",
    )
    output_tokens: int = Field(default=12_000, ge=100, description="tokens above which a tool result is truncated")
    compaction: CompactionSettings = Field(default_factory=CompactionSettings)
    budget: BudgetSettings = Field(default_factory=BudgetSettings)
