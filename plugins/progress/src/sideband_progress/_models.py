"""The parameters of the op."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

_LONGEST_MESSAGE = 500

_Number = Annotated[float, Field(allow_inf_nan=False)]


class ProgressReportParams(BaseModel):
    """How far a call, or one job of it, is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    current: _Number | None = Field(default=None, description="How much is done, in whatever unit the skill counts.")
    total: _Number | None = Field(default=None, description="How much there is to do, in the same unit.")
    message: str | None = Field(default=None, description="One line for people; the rest of a long one is cut off.")
    job_id: str | None = Field(
        default=None, max_length=100, description="Which of several jobs it is about; shown before the message."
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.current is None and self.total is None and self.message is None:
            raise ValueError("give at least one of current, total and message")
        return self

    def text(self) -> str | None:
        """The line to show, or ``None``."""
        job = None if self.job_id is None else f"[{self.job_id}]"
        text = " ".join(part for part in (job, self.message) if part is not None)
        # A terminal obeys control characters, whoever sent them.
        visible = "".join(character if character.isprintable() else " " for character in text[: 2 * _LONGEST_MESSAGE])
        line = " ".join(visible.split())
        if len(line) > _LONGEST_MESSAGE or len(text) > 2 * _LONGEST_MESSAGE:
            line = line[: _LONGEST_MESSAGE - 1] + "…"
        return line or None
