"""The table `[plugins.files]`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_MEBIBYTE = 1024 * 1024


class Config(BaseModel):
    """The limits of what is read, written, listed and kept.

    Attributes:
        max_read_bytes: how many bytes one op answers at most.
        max_file_bytes: how large a file may become.
        undo_bytes: up to which size what an op replaces or deletes is kept, to be put back later; 0 keeps nothing.
        max_entries: how many names one op answers at most.
        max_visited: how many names `files.find` looks at at most.
        threads: how many ops work on files at once in this host.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_read_bytes: Annotated[int, Field(ge=1, le=10 * _MEBIBYTE)] = 8 * _MEBIBYTE
    max_file_bytes: Annotated[int, Field(ge=1)] = 1024 * _MEBIBYTE
    undo_bytes: Annotated[int, Field(ge=0)] = 16 * _MEBIBYTE
    max_entries: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    max_visited: Annotated[int, Field(ge=1, le=10_000_000)] = 100_000
    threads: Annotated[int, Field(ge=1, le=64)] = 8
