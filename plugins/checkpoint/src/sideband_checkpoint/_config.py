"""The table ``[plugins.checkpoint]``."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Config(BaseModel):
    """The table ``[plugins.checkpoint]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    size: int = Field(default=262_144, gt=0, le=4 << 20, description="The maximum size of one checkpoint in bytes.")
    number: int = Field(default=100, gt=0, le=10_000, description="The maximum number of checkpoints of one skill.")
