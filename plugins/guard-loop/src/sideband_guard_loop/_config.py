"""The thresholds, named after the codes shown to the model when they are reached."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_Threshold = Annotated[int, Field(ge=0, le=1_000)]


class Config(BaseModel):
    """The table ``[plugins.guard-loop]``. A threshold of 0 disables the check.

    Example:
        >>> Config(same_tool_failure_halt=0).repeated_exact_failure_block
        5
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    repeated_exact_failure_warning: _Threshold = Field(
        default=2, description="failures of one tool with the same arguments, at which the model is warned"
    )
    repeated_exact_failure_block: _Threshold = Field(
        default=5, description="failures of one tool with the same arguments, after which that call is denied"
    )
    same_tool_failure_warning: _Threshold = Field(
        default=3, description="failures of one tool with any arguments, at which the model is warned"
    )
    same_tool_failure_halt: _Threshold = Field(
        default=8, description="failures of one tool with any arguments, after which its next call halts the run"
    )
    idempotent_no_progress_warning: _Threshold = Field(
        default=2, description="calls of one read-only tool with the same result, at which the model is warned"
    )
    idempotent_no_progress_block: _Threshold = Field(
        default=5, description="calls of one read-only tool with the same result, after which that call is denied"
    )
