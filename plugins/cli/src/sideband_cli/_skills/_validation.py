"""Validate a skill folder with all loaders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sideband.command_line import notice

from .._host._plugins import op_families

if TYPE_CHECKING:
    from sideband import Host
    from sideband.loading import SkillProblem

_OTHER_FORMAT = "skill.manifest.missing"


async def validate_folder(host: Host, folder: Path) -> list[SkillProblem]:
    """Return the problems that the loaders of this skill's format find, and print a notice for each broken loader.

    If no loader recognizes the format, the result says what each one misses.

    Raises:
        PluginError: if no loader can be used.
    """
    from sideband.plugins import PluginError

    families = await op_families(host)
    found: list[list[SkillProblem]] = []
    broken: PluginError | None = None
    for name in host.plugins.names("loader", broken=True):
        try:
            plugin = await host.plugins.load("loader", name)
        except PluginError as error:
            broken = error
            notice(f"notice: {error.message}")
            continue
        for loader in plugin.contribution:
            try:
                if hasattr(loader, "validate"):
                    found.append(_checked(await loader.validate(folder, families=families)))
            except (Exception, SystemExit) as error:  # noqa: BLE001  a broken loader must not affect the others
                notice(f"notice: the loader `{name}` failed: {type(error).__name__}: {error}")
                found.append([_broken(name, folder)])
    if not found and broken is not None:
        raise broken
    known = [problems for problems in found if not any(problem.code == _OTHER_FORMAT for problem in problems)]
    return list(dict.fromkeys(problem for problems in known or found for problem in problems))


def _broken(name: str, folder: Path) -> SkillProblem:
    """Return a problem that counts only if no other loader recognizes the folder."""
    from sideband.loading import SkillProblem

    reason = f"the loader `{name}` failed, so the folder could not be checked with it"
    return SkillProblem(
        str(folder), _OTHER_FORMAT, reason, "update the package of the loader, or remove it", fatal=True
    )


def _checked(problems: Any) -> list[SkillProblem]:
    from sideband.loading import SkillProblem

    found = list(problems)
    for problem in found:
        if not isinstance(problem, SkillProblem):
            raise TypeError(f"expected problems, got a {type(problem).__name__}")
    return found
