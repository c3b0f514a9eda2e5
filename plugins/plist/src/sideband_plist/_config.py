"""The table `[plugins.plist]`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_MEBIBYTE = 1024 * 1024


class Config(BaseModel):
    """Limits of one property list.

    Attributes:
        max_bytes: the maximum size of the document, and the maximum total size of its texts and data, where shared
            ones count for each reference.
        max_values: the maximum number of values, where shared ones count for each reference.
        max_depth: the maximum nesting depth of lists and objects.
        threads: how many large documents are parsed at once in this host.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_bytes: Annotated[int, Field(ge=1024, le=64 * _MEBIBYTE)] = 8 * _MEBIBYTE
    max_values: Annotated[int, Field(ge=1, le=200_000)] = 100_000
    max_depth: Annotated[int, Field(ge=1, le=56)] = 48
    threads: Annotated[int, Field(ge=1, le=16)] = 2
