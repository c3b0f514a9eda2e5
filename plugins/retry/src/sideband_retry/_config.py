"""The settings of this plugin."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Config(BaseModel):
    """The table ``[plugins.retry]``.

    Example:
        >>> Config(attempts=5).cap
        60.0
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    attempts: int = Field(default=3, ge=0, le=100, description="the maximum number of retries of a failed model call")
    base: float = Field(
        default=2.0,
        ge=0,
        le=3_600,
        description="seconds: the maximum wait before the first retry; it doubles each time",
    )
    cap: float = Field(
        default=60.0, ge=0, le=3_600, description="seconds: the maximum wait, unless the provider names one"
    )
    deadline: float = Field(
        default=900.0,
        gt=0,
        le=86_400,
        description="seconds from the start of the first call to the start of the last one",
    )
    longest_wait: float = Field(
        default=120.0,
        ge=0,
        le=86_400,
        description="seconds: if a provider names a longer wait, the run is parked until then",
    )
