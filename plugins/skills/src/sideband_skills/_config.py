"""The settings of this plugin."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Config(BaseModel):
    """The table ``[plugins.skills]``: what loading may use, and where the packages of scripts come from.

    Example:
        >>> Config(seconds=2).nodes
        100000
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    files: int = Field(default=5_000, ge=1, le=1_000_000, description="the maximum number of files of a skill")
    size: int = Field(default=64 << 20, ge=1, le=256 << 20, description="the maximum size of a skill's files in bytes")
    nodes: int = Field(
        default=100_000, ge=1, le=10_000_000, description="the maximum number of syntax nodes in a skill's Python files"
    )
    memory: int = Field(
        default=256 << 20,
        ge=64 << 20,
        le=16 << 30,
        description="bytes: the memory limit of the process that parses Python",
    )
    seconds: float = Field(default=5.0, gt=0, le=3_600, description="processor time for loading one skill")
    total_seconds: float = Field(default=120.0, gt=0, le=86_400, description="processor time for loading all skills")
    total_text: int = Field(
        default=512 << 20,
        ge=1,
        le=16 << 30,
        description="characters: the maximum size of all texts, tools, file names and problems",
    )
    wheels: str | None = Field(
        default=None,
        min_length=1,
        description="an absolute path or one that begins with `~/`: the only folder of wheels for packages of scripts",
    )
    offline: bool = Field(default=False, description="whether packages of scripts come from uv's cache only")
