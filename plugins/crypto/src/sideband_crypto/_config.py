"""The table `[plugins.crypto]`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_MEBIBYTE = 1024 * 1024


class Config(BaseModel):
    """Limits on the resources of one op.

    Attributes:
        max_bytes: the maximum size of data that is hashed, signed, encrypted or decrypted.
        max_iterations: the maximum number of PBKDF2 iterations, over all blocks of the result.
        max_memory: the maximum memory of scrypt in bytes; only one op uses it at a time.
        max_cost: the maximum product of `n`, `r` and `p` of scrypt.
        threads: how many expensive ops run at once in this host; a skill gets at most half of them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_bytes: Annotated[int, Field(ge=1024, le=64 * _MEBIBYTE)] = 8 * _MEBIBYTE
    max_iterations: Annotated[int, Field(ge=1, le=100_000_000)] = 5_000_000
    max_memory: Annotated[int, Field(ge=_MEBIBYTE, le=1024 * _MEBIBYTE)] = 256 * _MEBIBYTE
    max_cost: Annotated[int, Field(ge=1024, le=1 << 26)] = 1 << 22
    threads: Annotated[int, Field(ge=1, le=32)] = 4
