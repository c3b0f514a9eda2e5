"""The table ``[tools]``: which tools agents have, and which of them a model request sends."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

_ALWAYS = (
    *("ask", "command", "edit", "fetch", "glob", "grep", "list", "output", "plan", "read", "search", "skill"),
    *("skill_run", "subagent", "todo", "write"),
)
"""The tools of the default distribution that most tasks need."""


class ToolSettings(BaseModel):
    """The table ``[tools]``. A name that ends in ``*`` matches by prefix.

    Example:
        >>> ToolSettings(disabled=["write"]).suggest_over
        15
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    disabled: list[str] = Field(default_factory=list, description="tools that no agent has, whatever else names them")
    explicit: list[str] = Field(
        default_factory=list, description="tools that an agent has only if its `tools` have their exact names"
    )
    suggest_over: int = Field(
        default=15,
        ge=1,
        description="the number of tools, besides `always`, above which a model request sends only some of them",
    )
    suggest_with: Literal["bm25", "embeddings", "model"] = Field(
        default="bm25",
        description="how these are selected: by words (`bm25`), or by `embeddings` or a `model`, else by words",
    )
    progress: bool = Field(default=True, description="whether the progress of running tools is shown to observers")
    progress_seconds: float = Field(
        default=0.05, ge=0, le=10, description="the time for which output is collected before it is shown; 0 for none"
    )
    progress_bytes: int = Field(
        default=16_384, ge=4, le=1 << 20, description="the size of output that is shown at once, in bytes"
    )
    always: list[str] = Field(default_factory=lambda: list(_ALWAYS), description="tools that are always sent")
