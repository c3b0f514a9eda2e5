"""The table ``[plugins.scripted]``."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class Config(BaseModel):
    """The table ``[plugins.scripted]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    script: Path | None = Field(default=None, description="The file with the turns to play, .json or .toml.")
