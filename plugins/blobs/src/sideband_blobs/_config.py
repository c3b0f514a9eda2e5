"""The table `[plugins.blobs]`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_MEBIBYTE = 1024 * 1024


class Config(BaseModel):
    """Limits on storage and results.

    Attributes:
        max_blob_bytes: the maximum size of one blob.
        max_total_bytes: the maximum total size of all blobs of the host after `blobs.put`.
        max_read_bytes: the maximum size of the content that an op returns.
        max_entries: the maximum number of blobs that an op lists.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_blob_bytes: Annotated[int, Field(ge=1)] = 64 * _MEBIBYTE
    max_total_bytes: Annotated[int, Field(ge=1)] = 4096 * _MEBIBYTE
    max_read_bytes: Annotated[int, Field(ge=1, le=10 * _MEBIBYTE)] = 8 * _MEBIBYTE
    max_entries: Annotated[int, Field(ge=1, le=100_000)] = 1_000
