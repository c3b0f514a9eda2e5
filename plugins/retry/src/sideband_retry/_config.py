"""The table of this plugin."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Config(BaseModel):
    """The table ``[plugins.retry]``.

    Example:
        >>> Config(attempts=5).cap
        60.0
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    attempts: int = Field(3, ge=0, le=100, description="how often a model call that failed is made again")
    base: float = Field(
        2.0, ge=0, le=3_600, description="seconds: the longest wait before the first repetition; it doubles each time"
    )
    cap: float = Field(60.0, ge=0, le=3_600, description="seconds: the longest wait that is not a provider's wish")
    deadline: float = Field(
        900.0, gt=0, le=86_400, description="seconds from the beginning of the first call to that of the last"
    )
    longest_wait: float = Field(
        120.0, ge=0, le=86_400, description="seconds: if a provider names a longer wait, the run parks until then"
    )
