"""Runs a script, and collects the files that it writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sideband.ops import OpContext, OpFailed

from ._errors import SkillChanged
from ._interpreters import started
from ._models import ScriptRunParams, ScriptRunResult, SkillFile, SkillPrepareResult
from ._scratch import BLOBS, ScratchFolder


async def run_script(skill: SkillPrepareResult, params: ScriptRunParams, ctx: OpContext) -> ScriptRunResult:
    """Install the packages of a script, run it in a new folder, and keep its files as requested.

    Raises:
        SkillChanged: if the skill has other files than those for which the rights were given.
    """
    if skill.digest != params.digest:
        raise SkillChanged(skill.name)
    arguments = [_in_snapshot(one, params.folder, skill.folder) for one in params.arguments]
    program = started(params.script, skill.folder, skill.environment, arguments)
    if not skill.installed:
        await ctx.dispatch("skills.install", {"requirements": skill.requirements})
    scratch = await ScratchFolder.make(ctx, skill.digest)
    request = {
        "binary": program.binary,
        "args": list(program.arguments),
        "input": params.input,
        "cwd": scratch.path,
        "read": [skill.folder, *program.places],
        "write": [scratch.path, *params.places],
        "network": params.network,
        "timeout": params.timeout,
        "stream": True,
    }
    ran = await ctx.dispatch("shell.run", request)
    names = ("exit_code", "signal", "stdout", "stderr", "timed_out")
    return ScriptRunResult(**{name: ran[name] for name in names}, **await _collected(ctx, scratch, params.keep))


def _in_snapshot(argument: str, source: str, snapshot: str) -> str:
    """Return an argument in which the skill's own folder is replaced by the snapshot, which the script can read."""
    if argument == source or argument.startswith(f"{source}/"):
        return snapshot + argument.removeprefix(source)
    return argument


async def _collected(ctx: OpContext, scratch: ScratchFolder, keep: str | None) -> Mapping[str, Any]:
    """Keep the files in the working directory, and remove it if nothing is left."""
    entries, more = await scratch.entries(ctx)
    files = [await _kept(ctx, scratch, one, keep) for one in entries if one["kind"] == "file"]
    folders = [str(one["name"]) for one in entries if one["kind"] == "folder"]
    is_empty = not more and len(folders) + len(files) == len(entries) and all(one.kept is not None for one in files)
    if is_empty:
        await scratch.remove(ctx, folders)
    return {"folder": None if is_empty else scratch.path, "files": files, "more": more}


async def _kept(ctx: OpContext, scratch: ScratchFolder, entry: Mapping[str, Any], keep: str | None) -> SkillFile:
    file = SkillFile(name=entry["name"], size=entry["size"])
    try:
        if keep == BLOBS:
            file.kept = await scratch.store(ctx, file.name)
        elif keep is not None:
            file.kept = await scratch.move(ctx, file.name, keep)
    except OpFailed as error:  # the script chose the name, and has run: its output and other files must not be lost
        file.problem = error.message
    return file
