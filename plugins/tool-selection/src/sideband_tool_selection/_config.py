"""The table `[plugins.tool-selection]`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Config(BaseModel):
    """How tools are selected. The table ``[tools]`` says when, and which ones always.

    Example:
        >>> Config().expires_after
        10
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str | None = Field(
        default=None,
        description='the model that selects with `suggest_with = "model"`, as provider:model, by default the agent\'s; '
        'or the model for `suggest_with = "embeddings"`, which has no default',
    )
    least: int = Field(
        default=5, ge=0, le=1_000, description="the number of tools to suggest even if others fill `suggest_over`"
    )
    expires_after: int = Field(
        default=10,
        ge=1,
        le=1_000,
        description="inputs after which a tool that was requested is no longer sent for that",
    )
    expanded: int = Field(
        default=50, ge=1, le=1_000, description="the maximum number of requested tools that are sent; the newest count"
    )
