"""The table ``[plugins.prompt]``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SectionName = Literal[
    "identity", "documentation", "append", "knowledge", "memory", "user", "skills", "platform", "footer"
]
"""The sections, in their order."""


class Config(BaseModel):
    """The table ``[plugins.prompt]``. All limits are in characters, but ``file_limit``.

    Example:
        >>> Config(sections={"platform": False}).has("platform")
        False
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    profile: str | None = Field(
        None, pattern=r"^[a-z0-9]+([_-][a-z0-9]+)*$", max_length=64, description="the folder under `profiles` to use"
    )
    sections: dict[SectionName, bool] = Field(default_factory=dict, description="sections to leave out: name = false")
    memory_limit: int = Field(4_000, ge=1, le=100_000, description="how long MEMORY.md may be")
    user_limit: int = Field(2_000, ge=1, le=100_000, description="how long USER.md may be")
    knowledge_limit: int = Field(40_000, ge=0, description="how much of documents is always in the prompt")
    skills_limit: int = Field(20_000, ge=1, description="how long the list of skills may be")
    file_limit: int = Field(64 << 10, ge=1, le=4 << 20, description="bytes that are read of one file")
    documentation: str | None = Field(None, description="where the documentation for this agent is")
    platforms: dict[str, str] = Field(default_factory=dict, description="what can be shown, by channel")

    def has(self, name: SectionName) -> bool:
        """Whether a section is wanted."""
        return self.sections.get(name, True)
