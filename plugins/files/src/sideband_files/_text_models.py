"""Parameters and results of the ops that work on lines of text."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from ._models import FilePathParams, Pattern


class FileLinesParams(FilePathParams):
    """Parameters of `files.lines`."""

    first: int = Field(default=1, ge=1, description="the first line, counted from 1")
    count: int = Field(default=2_000, ge=1, le=100_000, description="the maximum number of lines")
    max_bytes: int = Field(default=256 * 1024, ge=1, le=1024 * 1024, description="the maximum size of the lines")


class FileLinesResult(BaseModel):
    """Some lines of a file.

    Attributes:
        path: the path in the form that capabilities use.
        size: the size of the whole file in bytes.
        beginning: the first bytes of the file, which tell its type; up to 16.
        content: the lines with their ends, as bytes.
        count: the number of lines in `content`.
        cut: whether the last line in `content` is incomplete, because it alone exceeds the limit.
        next: the number of the line that follows, if there is one.
        sha256: the digest of the whole file, unless it is too large to be returned by `files.read`.
    """

    path: str
    size: int
    beginning: bytes
    content: bytes
    count: int
    cut: bool = False
    next: int | None = None
    sha256: str | None = None


class FileSearchParams(FilePathParams):
    """Parameters of `files.search`."""

    pattern: Annotated[str, StringConstraints(min_length=1, max_length=2_000)] = Field(
        description="a regular expression of RE2, compared with each line"
    )
    literal: bool = Field(default=False, description="whether `pattern` is a text instead of an expression")
    ignore_case: bool = Field(default=False, description="whether letters match in both cases")
    below: Annotated[str, StringConstraints(max_length=4_096)] = Field(
        default="", description="search only this file or folder, relative to `path`"
    )
    names: Annotated[list[Pattern], Field(max_length=20)] = Field(
        default=[], description="search only files that match one of these, such as `*.py` or `src/**/*.ts`"
    )
    hidden: bool = Field(default=False, description="include names that begin with a dot")
    ignored: bool = Field(default=False, description="include what the `.gitignore` files of the folders exclude")
    context: int = Field(default=0, ge=0, le=20, description="the number of lines before and after each match")
    limit: int = Field(default=200, ge=1, le=2_000, description="the maximum number of matching lines")


class LineMatch(BaseModel):
    """A line that matches.

    Attributes:
        path: the path of the file, relative to the searched folder.
        line: the number of the line, counted from 1.
        text: the line; a long one is shortened around the match.
        before: the lines before it, as requested.
        after: the lines after it, as requested.
    """

    path: str
    line: int
    text: str
    before: list[str] = []
    after: list[str] = []


class FileSearchResult(BaseModel):
    """The result of a search, sorted by path.

    Attributes:
        path: the searched folder.
        matches: the lines that match.
        files: the number of files that were searched.
        skipped: the number of files that were not, because they are not text or cannot be read.
        truncated: why there may be more: `limit`, `time` or `names`; null if everything was searched.
    """

    path: str
    matches: list[LineMatch]
    files: int
    skipped: int
    truncated: str | None = None
