"""What a user types after a slash: the command is replaced by the text of its file.

Only what the user typed is read so. The text of a model, a tool, a server or a file runs no command, and the text of a
command file is sent as it is: nothing in it is run or read.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from anyio import to_thread
from sideband.contexts import AgentContext
from sideband.hooks import ChatCommand, Input, Transform
from sideband.rendering import render
from sideband.settings import trusted_project

from ._command_file import CommandFile
from ._command_files import CommandFiles, find_commands
from ._tool_limits import LIMIT_KIND, limited_tools

_COMMAND = re.compile(r"/([a-z][a-z0-9:_-]*)(?:\s+(.*))?\Z", re.DOTALL)
# What a channel adds to the typed text: files that it names, and piped input.
_ADDED = re.compile(r"\n\n(?=<(?:file|folder|input)(?: name=\"[^\"\n]*\")?>\n)")
_log = logging.getLogger(__name__)


async def replaced_command(event: Input, ctx: AgentContext) -> Transform | None:
    """Return the text of the command that the user typed, or ``None`` if it is not one."""
    if event.source != "interactive" or not event.text.startswith(event.typed):
        return None
    typed, *added = _ADDED.split(event.typed, maxsplit=1)
    found = _COMMAND.match(typed)
    command = (await _commands(ctx)).commands.get(found[1]) if found else None
    if found is None or command is None:
        return None
    if command.allowed is not None:
        await _limit(command, command.allowed, ctx)
    text = command.expanded((found[2] or "").strip())
    return Transform("\n\n".join([text, *added]) + event.text[len(event.typed) :])


async def file_commands(ctx: AgentContext) -> list[ChatCommand]:
    """Return the commands for the menu of a chat."""
    found = await _commands(ctx)
    listed = [ChatCommand(one.name, one.summary or "-", usage=one.usage) for one in found.commands.values()]
    return [ChatCommand("commands", "list the commands that are files, with their paths", _listed), *listed]


async def _listed(_: str, ctx: AgentContext) -> str:
    found = await _commands(ctx)
    lines = [line for _, one in sorted(found.commands.items()) for line in _lines(one)]
    lines += [f"not used: {problem}" for problem in found.problems]
    return render("\n".join(lines) or f"no commands: write Markdown files into {ctx.home / 'commands'}", prose=True)


def _lines(command: CommandFile) -> Sequence[str]:
    lines = [f"/{command.name} {command.usage}".rstrip() + f": {command.summary}", f"  {command.path}"]
    if command.allowed is not None:
        tools, unknown = limited_tools(command.allowed)
        lines.append(f"  its run may use: {', '.join(tools) or 'no tools'}")
        lines += [f"  unknown in allowed-tools: {', '.join(unknown)}"] * bool(unknown)
    return lines


async def _commands(ctx: AgentContext) -> CommandFiles:
    project = await to_thread.run_sync(trusted_project, ctx.home, ctx.folder)
    return await to_thread.run_sync(find_commands, ctx.home, project, ctx.config.file_limit)


async def _limit(command: CommandFile, entries: Sequence[str], ctx: AgentContext) -> None:
    """Store the tools that this run may use, for the guard."""
    tools, unknown = limited_tools(entries)
    if unknown:
        names = ", ".join(map(render, unknown))
        _log.warning("/%s: %s in `allowed-tools` means no tool here and allows nothing", command.name, names)
    await ctx.session.append_custom(LIMIT_KIND, {"run": ctx.run, "command": command.name, "tools": tools})
