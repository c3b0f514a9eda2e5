"""The parameters of the tools for the web."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class PageParams(BaseModel):
    """The parameters of ``fetch``."""

    model_config = ConfigDict(extra="forbid")

    url: str = Field(min_length=1, max_length=8_000, description="The complete URL of the page.")
    offset: int = Field(default=0, ge=0, description="The first character to show, counted from 0, of a long page.")
    source: bool = Field(default=False, description="Whether to show the HTML of a page instead of its text.")


class SearchParams(BaseModel):
    """The parameters of ``search``."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(min_length=1, max_length=500, description="What to search for.")
    page: int = Field(default=1, ge=1, le=50, description="The page of results, counted from 1.")
    period: Literal["day", "month", "year"] | None = Field(
        default=None, description="Find only what was published within this period."
    )
