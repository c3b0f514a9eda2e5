"""Parameters of the ops."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class CheckpointParams(BaseModel):
    """The name of a checkpoint."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(
        default="default",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
        description="The name of the checkpoint; a skill may have several.",
    )


class CheckpointSaveParams(BaseModel):
    """What to save."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    data: Any = Field(description="The data, as JSON.")
    name: str = Field(
        default="default",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
        description="The name of the checkpoint; a skill may have several.",
    )
