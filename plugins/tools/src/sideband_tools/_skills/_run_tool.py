"""The tool `skill_run`: run a script of a skill in the isolation of skills."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sideband.ops import Level
from sideband.rendering import render
from sideband.tools import ToolContext, ToolOutput, tool

from .._places import Places
from ._known_skills import find_skill, prepare_skill
from ._models import SkillRunParams

_BLOBS = "blobs"
_MOST_SHOWN = 100
_MISSING_MODULE = "ModuleNotFoundError: No module named "
_SLOWEST = 2 * 3_600.0


@tool("skill_run", level=Level.RESTRICTED, timeout=_SLOWEST, resume="replay")
async def skill_run(params: SkillRunParams, ctx: ToolContext) -> ToolOutput:
    """Run a script that a skill contains. Read the instructions of the skill first.

    It runs in an empty folder, and can use the folders in which you may work. It cannot change the files of the skill.
    Its packages are installed first. The result has its output, and the files that it wrote.
    """
    places = Places.of(ctx)
    request = params.model_dump(include={"script", "packages", "network"})
    request["places"] = [str(one) for one in places.folders]
    keep = params.keep if params.keep in {None, _BLOBS} else places.changed_path(str(params.keep))
    skill = await prepare_skill(ctx, await find_skill(ctx, params.name), **request)
    request |= params.model_dump(include={"arguments", "input", "timeout"})
    request |= {"folder": str(skill.source), "digest": skill.digest, "keep": keep}
    ran = await ctx.dispatch("skills.run", request, uses=skill.uses(skill.found["capabilities"]))
    lines = [*_printed(ran, params, skill.found["requirements"]), *_files(ran, places, params.keep)]
    return ToolOutput("\n".join(lines), is_error=bool(ran["exit_code"] or ran["timed_out"]))


def _printed(ran: Mapping[str, Any], params: SkillRunParams, requirements: Sequence[str]) -> Iterator[str]:
    out, error = _text(ran["stdout"]), _text(ran["stderr"])
    yield from filter(None, (out, error))
    if ran["timed_out"]:
        yield f"[killed after {params.timeout:g} s]"
    elif ran["signal"]:
        yield f"[killed by {ran['signal']}]"
    else:
        yield f"[exit code {ran['exit_code']}]"
    if _MISSING_MODULE in error and params.script.endswith(".py"):
        name = error.rpartition(_MISSING_MODULE)[2].partition("\n")[0].strip("'\" ")
        installed = ", ".join(requirements) or "none"
        yield f"[the module {name} is not installed (packages: {installed}); pass its package in `packages`]"


def _files(ran: Mapping[str, Any], places: Places, keep: str | None) -> Iterator[str]:
    files = ran["files"]
    if not files:
        yield "[it wrote no files in its working directory]"
        return
    where = "" if keep else f", kept in `{ran['folder']}` of the host; set `keep` to get them"
    left = f"not kept, but left in `{ran['folder']}` of the host"
    yield f"[files that it wrote{where}]"
    for one in files[:_MOST_SHOWN]:
        kept = one["kept"]
        name = render(one["name"]) if kept is None else f"blob {kept}" if keep == _BLOBS else places.shown(kept)
        problem = "" if one["problem"] is None else f" [{left}: {render(one['problem'])}]"
        yield f"{name} ({one['size']:,} bytes){problem}"
    if len(files) > _MOST_SHOWN or ran["more"]:
        yield f"[{'at least ' if ran['more'] else ''}{len(files) - _MOST_SHOWN:,} more files]"


def _text(printed: str | bytes) -> str:
    text = printed if isinstance(printed, str) else printed.decode(errors="replace")
    return text.rstrip("\n")
