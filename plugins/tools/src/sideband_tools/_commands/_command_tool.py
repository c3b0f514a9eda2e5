"""The tool `command`: run a command line in the places of the agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sideband.active_skills import COMMAND_PREFIX
from sideband.ops import Level, OpError
from sideband.tools import ToolContext, ToolOutput, tool

from .._places import SHELLS, Places
from ._models import CommandParams
from ._texts import ended, text_of, with_note

_LONGEST = 3_700.0


@tool("command", level=Level.RESTRICTED, timeout=_LONGEST, resume="replay", category="command")
async def command(params: CommandParams, ctx: ToolContext) -> ToolOutput:
    """Run a command line with bash, such as tests, builds or git.

    It may read, change and execute files in your folders, but cannot read other files of the user. It has a temporary
    home folder, none of the user's environment variables, usually no network, and no input. Processes that it leaves
    behind end with it: use `background` for servers.
    """
    places = Places.of(ctx)
    request = {
        "args": ["-c", COMMAND_PREFIX + params.command],
        "cwd": places.path(params.folder),
        "execute": [str(one) for one in places.folders if one.is_dir()],
        "read": [str(one) for one in places.programs],
        "network": places.config.network,
    }
    if params.background:
        limit = {"timeout": params.timeout} if "timeout" in params.model_fields_set else {}
        started = await _run(ctx, places, "shell.start", {**request, **limit})
        program = started["program"]
        return ToolOutput(f"[started; its id is {program}: read its output with `command_output`]")
    found = await _run(ctx, places, "shell.run", {**request, "timeout": params.timeout, "stream": True})
    after = f"after {found['seconds']:.1f} s"
    if found["timed_out"]:
        note = f"killed {after} because its time was over: raise `timeout`, or use `background`"
    else:
        note = f"{ended(found)} {after}"
    text = with_note(text_of(found["stdout"]), note)
    return ToolOutput(text, is_error=found["timed_out"], metadata={"exit_code": found["exit_code"]})


async def _run(ctx: ToolContext, places: Places, op: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Run a command with the first shell that is installed."""
    for shell in SHELLS:
        try:
            found: Mapping[str, Any] = await ctx.dispatch(op, {"binary": shell, **request}, **places.shell())
        except OpError as error:
            if error.code != "shell.missing" or shell == SHELLS[-1]:
                raise
        else:
            return found
    raise AssertionError("there is at least one shell")
