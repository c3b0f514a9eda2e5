"""The table `[plugins.blobs]`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_MEBIBYTE = 1024 * 1024


class Config(BaseModel):
    """The limits of what is kept and answered.

    Attributes:
        max_blob_bytes: how large one blob may be.
        max_total_bytes: how much all blobs of the host may be together, for `blobs.put` to add another one.
        max_read_bytes: how many bytes one op answers at most.
        max_entries: how many blobs one op lists at most.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_blob_bytes: Annotated[int, Field(ge=1)] = 64 * _MEBIBYTE
    max_total_bytes: Annotated[int, Field(ge=1)] = 4096 * _MEBIBYTE
    max_read_bytes: Annotated[int, Field(ge=1, le=10 * _MEBIBYTE)] = 8 * _MEBIBYTE
    max_entries: Annotated[int, Field(ge=1, le=100_000)] = 1_000
