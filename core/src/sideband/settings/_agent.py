"""The table ``[agent]``: which model, how much it may cost, and when a conversation is made shorter."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

_Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CompactionSettings(_Table):
    """The table ``[agent.compaction]``. The defaults are those that pi uses."""

    enabled: bool = Field(default=True, description="whether a long conversation is made shorter without being asked")
    reserve: int = Field(16_384, ge=0, description="tokens of the context window that are kept free for an answer")
    percent: float | None = Field(
        None, gt=0, le=100, description="compact at this share of the window instead of by `reserve`"
    )
    keep: int = Field(20_000, ge=0, description="tokens of the newest messages that are kept as they are")


class BudgetSettings(_Table):
    """The table ``[agent.budget]``: what a session may use, its children included. Absent: no limit."""

    money: _Amount | None = Field(None, description="US dollars")
    tokens: int | None = Field(None, gt=0, description="tokens, read and written")
    calls: int | None = Field(None, gt=0, description="tool calls")
    seconds: _Amount | None = Field(None, description="seconds at work")


class AgentSettings(_Table):
    """The table ``[agent]``.

    Example:
        >>> AgentSettings(model="anthropic:claude-sonnet-4-5").compaction.reserve
        16384
    """

    model: str | None = Field(None, description="the model to use, as provider:model")
    fallbacks: list[str] = Field(default_factory=list, description="models to try in order if that one fails")
    thinking: Literal["off", "low", "medium", "high"] | None = Field(
        None, description="how much the model may think before it speaks; absent: as the provider does"
    )
    max_tokens: int | None = Field(None, gt=0, description="how long an answer may be, in tokens")
    context_window: int | None = Field(None, gt=0, description="tokens, if the provider does not say or is wrong")
    temperature: float | None = Field(None, ge=0, le=2, description="absent: as the provider does")
    tools: list[str] | None = Field(None, description="the tools that agents may call; all if absent")
    parallel: int = Field(10, ge=1, le=100, description="tool calls of one turn that run at the same time")
    turns: int = Field(200, ge=1, description="model steps in one run, after which it parks")
    depth: int = Field(3, ge=0, le=10, description="how deep agents may spawn agents")
    tool_seconds: _Amount | None = Field(
        None,
        description="seconds for a call of a tool that names no limit of its own; absent: `[policy] timeout` for a "
        "tool of a skill, 600 for one of a plugin",
    )
    output_tokens: int = Field(12_000, ge=100, description="tokens of a tool result above which it is shown cut")
    compaction: CompactionSettings = Field(default_factory=CompactionSettings)
    budget: BudgetSettings = Field(default_factory=BudgetSettings)
