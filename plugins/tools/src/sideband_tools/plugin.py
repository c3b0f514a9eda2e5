"""Registration of the tools. `output`, `skill` and `subagent` are entry points of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sideband.plugins import PluginContext
from sideband.tools import Tool

from ._commands import command, command_output, command_stop
from ._config import Config
from ._files import edit, glob, grep, image, list_, read, write
from ._memory import history, memory
from ._output_tool import output
from ._people import ask, todo
from ._skills import skill, skill_delete, skill_run, skill_write
from ._subagent_tool import subagent
from ._web import KeptPages, fetch, search

__all__ = ["Config", "lifespan", "output", "sideband_tools", "skill", "subagent"]


@asynccontextmanager
async def lifespan(_ctx: PluginContext) -> AsyncIterator[KeptPages]:
    """Keep long pages for the lifetime of the host."""
    yield KeptPages()


def sideband_tools(config: Config | None = None) -> list[Tool]:
    """Return the tools that are one entry point, so that one question covers their rights."""
    of_files = [read, write, edit, list_, glob, grep, image]
    of_commands = [command, command_output, command_stop] if config is None or config.commands else []
    others = [fetch, search, todo, ask, memory, history, skill_run, skill_write, skill_delete]
    return [*of_files, *of_commands, *others]
