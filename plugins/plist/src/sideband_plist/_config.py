"""The table `[plugins.plist]`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_MEBIBYTE = 1024 * 1024


class Config(BaseModel):
    """What one property list may be.

    Attributes:
        max_bytes: how long it may be, and how much text and data it may hold, repeated ones counted each time.
        max_values: how many values it may hold, those that stand in several places counted each time.
        max_depth: how deep its lists and objects may be nested.
        threads: how many long ones are read at once in this host.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_bytes: Annotated[int, Field(ge=1024, le=64 * _MEBIBYTE)] = 8 * _MEBIBYTE
    max_values: Annotated[int, Field(ge=1, le=200_000)] = 100_000
    max_depth: Annotated[int, Field(ge=1, le=56)] = 48
    threads: Annotated[int, Field(ge=1, le=16)] = 2
