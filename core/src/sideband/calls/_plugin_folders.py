"""The folders of skills that plugins return from the hook ``resources_discover``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio.to_thread

from ..hooks import Collected, HookRegistry, Resources, ResourcesDiscover
from ..hooks._results import MAX_FOLDERS
from ..loading import PluginFolder, SkillProblem


async def discover(hooks: HookRegistry, *, again: bool) -> tuple[tuple[PluginFolder, ...], tuple[SkillProblem, ...]]:
    """Ask plugins for folders of skills.

    Args:
        hooks: the hooks of the host.
        again: whether they were asked before.

    Returns:
        The usable folders in the order of the plugins, and a problem for each other one.
    """
    answers = await hooks.collect(ResourcesDiscover(Path.cwd(), "reload" if again else "startup"))
    return await anyio.to_thread.run_sync(_checked, answers)


def _checked(answers: tuple[Collected[Resources], ...]) -> tuple[tuple[PluginFolder, ...], tuple[SkillProblem, ...]]:
    folders: list[PluginFolder] = []
    problems: list[SkillProblem] = []
    for answer in answers:
        given = answer.value.skill_folders
        if len(given) > MAX_FOLDERS:
            problems.append(_problem(answer.plugin, f"it returned more than {MAX_FOLDERS} folders of skills"))
        for one in given[:MAX_FOLDERS]:
            if (fault := _fault(one)) is None:
                folders.append(PluginFolder(Path(one), answer.plugin))
            else:
                problems.append(_problem(answer.plugin, f"the folder of skills {_shown(one)} {fault}"))
    return tuple(folders), tuple(problems)


def _fault(folder: Any) -> str | None:
    """Return why a folder cannot be searched, or ``None``."""
    if not isinstance(folder, str | Path):
        return f"is a {type(folder).__name__}, not a path"
    if not os.path.isabs(folder):  # noqa: PTH117  a text, too
        return "is not an absolute path"
    return None if os.path.isdir(folder) else "is not an existing folder"  # noqa: PTH112  no error for a null character


def _shown(folder: Any) -> str:
    return repr(str(folder)[:200]) if isinstance(folder, str | Path) else "that it returned"


def _problem(plugin: str, fault: str) -> SkillProblem:
    hint = f"correct what the hook `resources_discover` of `{plugin}` returns; its other folders are used"
    return SkillProblem(f"plugin {plugin}", "skill.folder.invalid", f"plugin {plugin}: {fault}", hint, fatal=True)
