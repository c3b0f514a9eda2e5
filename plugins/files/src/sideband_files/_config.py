"""The table `[plugins.files]`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_MEBIBYTE = 1024 * 1024


class Config(BaseModel):
    """Limits on reading, writing, listing and undo.

    Attributes:
        max_read_bytes: the maximum size of the content that an op returns.
        max_file_bytes: the maximum size of a file.
        undo_bytes: the maximum size of replaced or deleted content that is kept for undo; 0 disables undo.
        max_entries: the maximum number of names that an op returns.
        max_visited: the maximum number of names that `files.find` and `files.search` visit.
        search_seconds: the seconds after which `files.search` returns what it has found.
        ripgrep: ripgrep, which finds the parts of large files that `files.search` need not read: the path of the
            program, `auto` for the one in the folders of the system, or `never`.
        ripgrep_bytes: the size from which a file is large.
        threads: how many ops access files at once in this host.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_read_bytes: Annotated[int, Field(ge=1, le=10 * _MEBIBYTE)] = 8 * _MEBIBYTE
    max_file_bytes: Annotated[int, Field(ge=1)] = 1024 * _MEBIBYTE
    undo_bytes: Annotated[int, Field(ge=0)] = 16 * _MEBIBYTE
    max_entries: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    max_visited: Annotated[int, Field(ge=1, le=10_000_000)] = 1_000_000
    search_seconds: Annotated[float, Field(gt=0, le=600)] = 20.0
    ripgrep: Annotated[str, Field(pattern=r"^(auto|never|/.+)$")] = "auto"
    ripgrep_bytes: Annotated[int, Field(ge=1)] = 16 * _MEBIBYTE
    threads: Annotated[int, Field(ge=1, le=64)] = 8
