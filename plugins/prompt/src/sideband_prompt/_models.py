"""The parameters of the tools."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from ._memory import MemoryTarget, as_entry

_Entry = Annotated[str, AfterValidator(as_entry)]


class KnowledgeParams(BaseModel):
    """The parameters of ``prompt.knowledge``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    action: Literal["list", "query", "read"]
    query: str = Field(default="", max_length=1_000, description="query: words to search for in titles, tags and texts")
    path: str = Field(
        default="", max_length=1_000, description="read: the path of the document, as returned by `list` and `query`"
    )
    offset: int = Field(default=0, ge=0, description="read: the first character, `next_offset` of the previous page")

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.action == "query" and not self.query.strip():
            raise ValueError("`query` requires `query`, the words to search for")
        if self.action == "read" and not self.path:
            raise ValueError("`read` requires `path`")
        return self


class MemoryParams(BaseModel):
    """The parameters of ``prompt.memory``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    action: Literal["list", "add", "replace", "remove"]
    target: MemoryTarget = Field(
        default="memory", description="`memory`: your own notes. `user`: what you know about the user."
    )
    entry: _Entry = Field(
        default="", description="replace, remove: the entry, or a part of it that no other entry contains"
    )
    text: _Entry = Field(default="", description="add, replace: the new entry, on one line")

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.action in ("replace", "remove") and not self.entry:
            raise ValueError(f"`{self.action}` requires `entry`")
        if self.action in ("add", "replace") and not self.text:
            raise ValueError(f"`{self.action}` requires `text`")
        return self
