"""The parameters of the tools."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

_MAX_CHARACTERS = 16_000


class OutputParams(BaseModel):
    """The parameters of ``output``."""

    model_config = ConfigDict(extra="forbid")

    handle: str = Field(min_length=1, max_length=500, description="The handle in the shortened result.")
    offset: int = Field(default=0, ge=0, description="The first character to read, counted from 0.")
    limit: int = Field(default=8_000, ge=1, le=_MAX_CHARACTERS, description="How many characters to read.")
    pattern: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Text to search for instead, from `offset` on; returns the matches with their surroundings. "
        "* matches anything within a line; case is ignored.",
    )


class SubagentParams(BaseModel):
    """The parameters of ``subagent``."""

    model_config = ConfigDict(extra="forbid")

    task: str = Field(
        min_length=1,
        description="The task, with everything needed to do it: the agent sees nothing of this conversation. "
        "Say what to answer, and in which form.",
    )
    tools: list[str] | None = Field(
        default=None,
        description="The names of the tools that it may call, a subset of yours; a trailing * matches the rest of a "
        "name. All of yours if omitted; none if empty.",
    )
    share: float = Field(
        default=0.5, gt=0, le=1, description="The fraction of your remaining budget that it may use, such as 0.25."
    )
