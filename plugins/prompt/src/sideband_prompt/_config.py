"""The table ``[plugins.prompt]``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SectionName = Literal[
    "identity", "documentation", "append", "knowledge", "memory", "user", "skills", "platform", "footer"
]
"""The sections, in their order."""


class Config(BaseModel):
    """The table ``[plugins.prompt]``. Limits are in characters, except ``file_limit``.

    Example:
        >>> Config(sections={"platform": False}).has("platform")
        False
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    profile: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9]+([_-][a-z0-9]+)*$",
        max_length=64,
        description="the folder under `profiles` to use",
    )
    sections: dict[SectionName, bool] = Field(default_factory=dict, description="sections to disable: name = false")
    memory_limit: int = Field(default=4_000, ge=1, le=100_000, description="the maximum length of MEMORY.md")
    user_limit: int = Field(default=2_000, ge=1, le=100_000, description="the maximum length of USER.md")
    instructions_limit: int = Field(
        default=100_000, ge=0, description="the maximum length of all instruction files of the project"
    )
    knowledge_limit: int = Field(
        default=40_000, ge=0, description="the maximum length of all documents in the prompt in full"
    )
    skills_limit: int = Field(default=20_000, ge=1, description="the maximum length of the list of skills")
    file_limit: int = Field(default=64 << 10, ge=1, le=4 << 20, description="bytes read from one file")
    documentation: str | None = Field(default=None, description="where to find the documentation of this agent")
    platforms: dict[str, str] = Field(default_factory=dict, description="how answers are displayed, by channel")

    def has(self, name: SectionName) -> bool:
        """Return whether a section is enabled."""
        return self.sections.get(name, True)
