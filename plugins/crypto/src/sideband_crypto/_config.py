"""The table `[plugins.crypto]`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_MEBIBYTE = 1024 * 1024


class Config(BaseModel):
    """What one op may use up.

    Attributes:
        max_bytes: how long a text may be that is hashed, signed, encrypted or decrypted.
        max_iterations: the most rounds of PBKDF2, over all the blocks of a long result.
        max_memory: how many bytes scrypt may use; one op uses it at a time.
        max_cost: the most that `n`, `r` and `p` of scrypt may be when they are multiplied.
        threads: how many ops that take long run at once in this host; one skill gets half of them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_bytes: Annotated[int, Field(ge=1024, le=64 * _MEBIBYTE)] = 8 * _MEBIBYTE
    max_iterations: Annotated[int, Field(ge=1, le=100_000_000)] = 5_000_000
    max_memory: Annotated[int, Field(ge=_MEBIBYTE, le=1024 * _MEBIBYTE)] = 256 * _MEBIBYTE
    max_cost: Annotated[int, Field(ge=1024, le=1 << 26)] = 1 << 22
    threads: Annotated[int, Field(ge=1, le=32)] = 4
