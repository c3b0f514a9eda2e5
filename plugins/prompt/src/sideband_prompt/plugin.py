"""Registration of the hook ``sections`` and of the tools: one plugin with one table of settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import to_thread
from sideband import hookimpl
from sideband.hooks import Section, Sections
from sideband.plugins import PluginContext
from sideband.tools import Tool

from ._config import Config
from ._knowledge_tool import knowledge
from ._memory_tool import memory
from ._sections import build_sections
from ._state import Projects

__all__ = ["Config", "lifespan", "sections", "sideband_tools"]


def sideband_tools() -> list[Tool]:
    """Return the tools of this plugin."""
    return [knowledge, memory]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[Projects]:  # noqa: ARG001  the host passes it
    """Yield the projects of sessions, shared by the hook and the tools."""
    yield Projects()


@hookimpl
async def sections(event: Sections, ctx: PluginContext) -> list[Section]:
    """Build the sections that are not empty, in order."""
    ctx.state.remember(event.session, event.project)
    today = ctx.now().date()
    # in a thread, so that a hanging file system does not block the deadline of the hook
    return await to_thread.run_sync(build_sections, event, ctx.config, ctx.home, today, abandon_on_cancel=True)
