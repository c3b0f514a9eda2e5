"""The parameters of the tools for files."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

FilePath = Annotated[str, Field(min_length=1, max_length=4_096)]
_PATH = "The path of the file, relative to the working directory or absolute."
_FOLDER = "The folder, relative to the working directory or absolute."


class ReadParams(BaseModel):
    """The parameters of ``read``."""

    model_config = ConfigDict(extra="forbid")

    path: FilePath = Field(description=_PATH)
    first: int = Field(default=1, ge=1, description="The first line to read, counted from 1.")
    count: int = Field(default=1_000, ge=1, le=5_000, description="How many lines to read.")
    pages: str | None = Field(
        default=None,
        pattern=r"^[1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?$",
        description="The pages of a PDF file, such as 3 or 2-5.",
    )


class ImageParams(BaseModel):
    """The parameters of ``image``."""

    model_config = ConfigDict(extra="forbid")

    path: FilePath = Field(description=_PATH)
    question: str = Field(min_length=1, max_length=4_000, description="What you want to know about the image.")


class WriteParams(BaseModel):
    """The parameters of ``write``."""

    model_config = ConfigDict(extra="forbid")

    path: FilePath = Field(description=_PATH)
    content: str = Field(max_length=8 * 1024 * 1024, description="The whole content of the file.")


class Replacement(BaseModel):
    """One replacement of ``edit``."""

    model_config = ConfigDict(extra="forbid")

    old: str = Field(min_length=1, description="The exact text to replace, with enough lines around it to be unique.")
    new: str = Field(description="The text to put in its place.")
    all: bool = Field(default=False, description="Whether to replace every occurrence instead of the only one.")


class EditParams(BaseModel):
    """The parameters of ``edit``."""

    model_config = ConfigDict(extra="forbid")

    path: FilePath = Field(description=_PATH)
    edits: list[Replacement] = Field(
        min_length=1,
        max_length=100,
        description="The replacements, made in this order. If one fails, no replacement is made.",
    )


class ListParams(BaseModel):
    """The parameters of ``list``."""

    model_config = ConfigDict(extra="forbid")

    path: FilePath = Field(default=".", description=_FOLDER)
    after: str = Field(default="", max_length=1_000, description="List only names after this one.")
    hidden: bool = Field(default=False, description="Whether to include names that begin with a dot.")


class GrepParams(BaseModel):
    """The parameters of ``grep``."""

    model_config = ConfigDict(extra="forbid")

    pattern: str = Field(min_length=1, max_length=2_000, description="A regular expression, compared with each line.")
    path: FilePath = Field(default=".", description="The file or folder: relative, or absolute.")
    names: list[str] = Field(
        default=[], max_length=20, description="Search only files that match one of these, such as `*.py`."
    )
    literal: bool = Field(default=False, description="Whether the pattern is a text instead of an expression.")
    ignore_case: bool = Field(default=False, description="Whether letters match in both cases.")
    context: int = Field(default=0, ge=0, le=20, description="How many lines to show before and after each match.")
    limit: int = Field(default=100, ge=1, le=1_000, description="The maximum number of matches.")
    ignored: bool = Field(default=False, description="Whether to include files that `.gitignore` excludes.")
    hidden: bool = Field(default=False, description="Whether to include names that begin with a dot.")


class GlobParams(BaseModel):
    """The parameters of ``glob``."""

    model_config = ConfigDict(extra="forbid")

    pattern: str = Field(
        min_length=1, max_length=200, description="Such as `src/**/*.py`: * within a name, ** for any folders."
    )
    path: FilePath = Field(default=".", description=_FOLDER)
    hidden: bool = Field(default=False, description="Whether to include names that begin with a dot.")
