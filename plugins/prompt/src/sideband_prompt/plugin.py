"""Registration of the hooks and of the tools: one plugin with one table of settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import to_thread
from sideband import hookimpl
from sideband.contexts import AgentContext
from sideband.hooks import ChatCommand, ChatCommands, Input, Section, Sections, Transform
from sideband.plugins import PluginContext
from sideband.tools import Tool

from ._commands._user_input import file_commands, replaced_command
from ._config import Config
from ._knowledge_tool import knowledge
from ._memory_tool import memory
from ._sections import build_sections
from ._state import Projects

__all__ = ["Config", "chat_commands", "input", "lifespan", "sections", "sideband_tools"]


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


@hookimpl
async def input(event: Input, ctx: AgentContext) -> Transform | None:  # noqa: A001  the name of the hook
    """Replace a command that the user typed by the text of its file."""
    return await replaced_command(event, ctx) if event.typed.startswith("/") else None


@hookimpl
async def chat_commands(event: ChatCommands, ctx: AgentContext) -> list[ChatCommand]:  # noqa: ARG001  the hook's signature
    """Add the commands that are files, and `/commands`, which lists them."""
    return await file_commands(ctx)
