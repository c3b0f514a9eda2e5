"""The parameters of the tools."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from ._memory import MemoryTarget, as_entry

_Entry = Annotated[str, AfterValidator(as_entry)]


class KnowledgeParams(BaseModel):
    """What to look for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    action: Literal["list", "query", "read"]
    query: str = Field("", max_length=1_000, description="query: words to look for in titles, tags and texts")
    path: str = Field("", max_length=1_000, description="read: the document, as `list` and `query` name it")
    offset: int = Field(0, ge=0, description="read: the character to begin with, `next_offset` of the page before")

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.action == "query" and not self.query.strip():
            raise ValueError("`query` needs `query`, words to look for")
        if self.action == "read" and not self.path:
            raise ValueError("`read` needs `path`")
        return self


class MemoryParams(BaseModel):
    """What to do with which notes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    action: Literal["list", "add", "replace", "remove"]
    target: MemoryTarget = Field(
        "memory", description="`memory`: your own notes. `user`: what you know about the user."
    )
    entry: _Entry = Field(
        "", description="replace, remove: the entry that is meant, or a part of it that no other entry has"
    )
    text: _Entry = Field("", description="add, replace: the new entry, one line")

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.action in ("replace", "remove") and not self.entry:
            raise ValueError(f"`{self.action}` needs `entry`")
        if self.action in ("add", "replace") and not self.text:
            raise ValueError(f"`{self.action}` needs `text`")
        return self
