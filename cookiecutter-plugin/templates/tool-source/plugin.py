"""The source of tools: each page of a folder is a tool that returns it, and changes are noticed."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field
from sideband import Level
from sideband.plugins import PluginContext
from sideband.tools import Tool, ToolContext

__all__ = ["Config", "sideband_tools"]

NAME = "{{ cookiecutter.__entry }}"
PAGE_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
LONGEST_PAGE = 200_000


class Config(BaseModel):
    """The table `[plugins.{{ cookiecutter.__entry }}]`."""

    model_config = ConfigDict(extra="forbid")

    folder: Path | None = None
    seconds: float = Field(default=2.0, gt=0)


class OpenPages:
    """An open source: it remembers what it has listed, to notice changes."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self._folder = folder
        self._seconds = seconds
        self._listed: dict[str, int] = {}

    async def list(self) -> list[Tool]:
        """Return a tool for each page, in the order of their names."""
        self._listed = await anyio.to_thread.run_sync(self._find)
        return [page_tool(self._folder / f"{name}.md") for name in self._listed]

    async def changed(self) -> None:
        """Return when a page was added, removed or changed."""
        while await anyio.to_thread.run_sync(self._find) == self._listed:  # noqa: ASYNC110  no event tells
            await anyio.sleep(self._seconds)

    def _find(self) -> dict[str, int]:
        """Return the time of the last change of each page."""
        if not self._folder.is_dir():
            return {}
        pages = sorted(path for path in self._folder.glob("*.md") if PAGE_NAME.fullmatch(path.stem) and path.is_file())
        return {path.stem: path.stat().st_mtime_ns for path in pages}


class Pages:
    """The source, which the host opens with the first agent."""

    name = NAME
    scope = "host"

    @asynccontextmanager
    async def open(self, ctx: PluginContext) -> AsyncIterator[OpenPages]:
        """Open the source until the host closes."""
        yield OpenPages(ctx.config.folder or ctx.home / NAME, ctx.config.seconds)


def page_tool(path: Path) -> Tool:
    """Return the tool that reads a page."""

    async def read(arguments: Mapping[str, Any], ctx: ToolContext) -> str:  # noqa: ARG001
        text = await anyio.to_thread.run_sync(lambda: path.read_text("utf-8", errors="replace"))
        return text[:LONGEST_PAGE]

    return Tool(
        name=f"{NAME}.{path.stem}",
        description=f"Read the page {path.stem} of the handbook.",
        parameters={"type": "object", "properties": {}, "additionalProperties": False},
        validate=without_arguments,
        run=read,
        level=Level.SAFE,
        read_only=True,
    )


def without_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse all arguments: the tools accept no argument."""
    if arguments:
        raise ValueError("the tool has no arguments")
    return {}


def sideband_tools() -> list[Pages]:
    """Register the source."""
    return [Pages()]
