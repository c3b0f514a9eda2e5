"""The provider `scripted`: registration and configuration."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from ._from_files import FileScripts

__all__ = ["Config", "sideband_providers"]


class Config(BaseModel):
    """The table ``[plugins.scripted]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    script: Path | None = Field(default=None, description="The file with the turns to play, .json or .toml.")


def sideband_providers() -> list[FileScripts]:
    """The one provider."""
    return [FileScripts()]
