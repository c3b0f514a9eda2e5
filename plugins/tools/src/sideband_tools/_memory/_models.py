"""The parameters of the tools that remember."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

_NAME = r"^[a-z0-9][a-z0-9-]{0,59}$"


class _Action(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NoteParams(_Action):
    """The parameters of ``memory``."""

    action: Literal["write", "read", "list", "search", "delete"] = Field(description="What to do.")
    name: str | None = Field(
        default=None,
        pattern=_NAME,
        description="The name of the note, such as `build-commands`: to write, read, delete.",
    )
    text: str | None = Field(
        default=None,
        min_length=1,
        max_length=20_000,
        description="The text of the note, to write; replaces the old one.",
    )
    query: str | None = Field(default=None, min_length=1, max_length=500, description="Words to search for.")


class HistoryParams(_Action):
    """The parameters of ``history``."""

    action: Literal["search", "show", "compact"] = Field(
        description="`search` for words in all messages; `show` messages in full; `compact`: replace old messages by a "
        "summary before the next step."
    )
    query: str | None = Field(default=None, min_length=1, max_length=500, description="Words to search for.")
    first: Annotated[int, Field(ge=1)] = Field(default=1, description="The number of the first message to show.")
    count: int = Field(default=5, ge=1, le=50, description="How many messages to show.")
    instructions: str = Field(default="", max_length=2_000, description="What the summary must keep, to compact.")
