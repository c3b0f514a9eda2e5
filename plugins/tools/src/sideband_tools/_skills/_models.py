"""The parameters of the tools for skills."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from .._files._models import Replacement

_NAME = "The name of the skill."
_File = Annotated[str, Field(min_length=1, max_length=500)]
_Argument = Annotated[str, Field(max_length=100_000)]
_Package = Annotated[str, Field(min_length=1, max_length=200)]


class SkillParams(BaseModel):
    """The parameters of ``skill``."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, description=_NAME)
    file: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="A file of the skill, as listed with its instructions. The instructions themselves if omitted.",
    )


class SkillRunParams(BaseModel):
    """The parameters of ``skill_run``."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, description=_NAME)
    script: _File = Field(description="A script of the skill, such as `scripts/convert.py`.")
    arguments: list[_Argument] = Field(
        default=[], max_length=1_000, description="Its arguments, one per item. Name your own files by absolute paths."
    )
    input: str | None = Field(default=None, max_length=1_000_000, description="Its standard input.")
    packages: list[_Package] = Field(
        default=[],
        max_length=50,
        description="Python packages that it imports and the skill does not declare, such as `pypdf>=5`.",
    )
    network: bool = Field(default=False, description="Whether it needs the network. The user is asked.")
    timeout: float = Field(default=120.0, gt=0, le=3_600, description="Seconds until it is killed.")
    keep: str | None = Field(
        default=None,
        min_length=1,
        max_length=4_096,
        description="Where to keep the files that it writes in its working directory: a folder, relative to yours or "
        "absolute, or `blobs`.",
    )


class SkillWriteParams(BaseModel):
    """The parameters of ``skill_write``."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(
        pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64, description="The name: lower-case words joined by `-`."
    )
    file: _File = Field(default="SKILL.md", description="The file, such as `scripts/convert.py`.")
    content: str | None = Field(
        default=None, max_length=8 * 1024 * 1024, description="The whole content of the file, instead of `edits`."
    )
    edits: list[Replacement] = Field(
        default=[], max_length=100, description="Replacements in an existing file. If one fails, none is made."
    )


class SkillDeleteParams(BaseModel):
    """The parameters of ``skill_delete``."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64, description=_NAME)
    file: _File | None = Field(default=None, description="The file to delete. The whole skill if omitted.")
