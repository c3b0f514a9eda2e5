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
        max_visited: the maximum number of names that `files.find` visits.
        threads: how many ops access files at once in this host.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_read_bytes: Annotated[int, Field(ge=1, le=10 * _MEBIBYTE)] = 8 * _MEBIBYTE
    max_file_bytes: Annotated[int, Field(ge=1)] = 1024 * _MEBIBYTE
    undo_bytes: Annotated[int, Field(ge=0)] = 16 * _MEBIBYTE
    max_entries: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    max_visited: Annotated[int, Field(ge=1, le=10_000_000)] = 100_000
    threads: Annotated[int, Field(ge=1, le=64)] = 8
