"""The parameters of the op."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

_LONGEST_MESSAGE = 500

_Number = Annotated[float, Field(allow_inf_nan=False)]


class ProgressReportParams(BaseModel):
    """The progress of a call, or of one of its jobs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    current: _Number | None = Field(default=None, description="The amount done, in any unit.")
    total: _Number | None = Field(default=None, description="The total amount, in the same unit.")
    message: str | None = Field(default=None, description="One line for users; a long line is truncated.")
    job_id: str | None = Field(
        default=None, max_length=100, description="The name of one of several jobs; shown before the message."
    )

    @model_validator(mode="after")
    def _is_not_empty(self) -> Self:
        if self.current is None and self.total is None and self.message is None:
            raise ValueError("at least one of current, total and message is required")
        return self

    def text(self) -> str | None:
        """Return the line to show, or ``None``."""
        job = None if self.job_id is None else f"[{self.job_id}]"
        text = " ".join(part for part in (job, self.message) if part is not None)
        # terminals obey control characters
        visible = "".join(character if character.isprintable() else " " for character in text[: 2 * _LONGEST_MESSAGE])
        line = " ".join(visible.split())
        if len(line) > _LONGEST_MESSAGE or len(text) > 2 * _LONGEST_MESSAGE:
            line = line[: _LONGEST_MESSAGE - 1] + "…"
        return line or None
