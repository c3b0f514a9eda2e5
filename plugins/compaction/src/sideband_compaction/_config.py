"""The table ``[plugins.compaction]``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Config(BaseModel):
    """The strategy of compaction and its limits.

    Example:
        >>> Config(strategy="window").clip
        2000
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    strategy: Literal["summary", "window", "none"] = Field(
        default="summary",
        description="`summary`: a model summarizes the older messages; `window`: drop them; `none`: do not compact",
    )
    model: str | None = Field(
        default=None,
        min_length=1,
        description="the model that writes summaries, as provider:model; the agent's if absent",
    )
    clip: int = Field(
        default=2_000, ge=100, description="characters of each tool call and each result that are summarized"
    )
    max_tokens: int = Field(default=4_096, ge=100, description="the maximum length of a summary in tokens")
