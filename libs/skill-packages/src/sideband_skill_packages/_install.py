"""Installs what a skill depends on, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import anyio
from anyio import to_thread
from sideband.environments import Environment, Environments
from sideband.loading import SkillSpec
from sideband.state import TemporaryFolder

from ._errors import EnvironmentFailed
from ._hardening import harden
from ._uv import PackageSource, install_packages


async def install(
    environments: Environments, skill: SkillSpec, source: PackageSource | None = None
) -> Environment | None:
    """Install what the skill depends on, whole or not at all. What is there already stays as it is.

    Args:
        environments: those of a host, ``host.environments``.
        skill: whose packages.
        source: where they come from; ``None``: the index that uv is configured with, wheels only.

    Returns:
        The environment; ``None`` if the skill needs none.

    Raises:
        InstallerMissing: there is no uv.
        EnvironmentFailed: it could not be done; nothing of it is left.
        SkillError: its requirements can't be understood, or it does not run on this version of Python.

    Example:
        >>> async def install_all(host: Host) -> None:
        ...     for skill in (await host.skills()).skills:
        ...         await install(host.environments, skill, PackageSource(wheels=Path("wheels")))
    """
    path = environments.path(skill)
    if path is None:
        return None
    if not await to_thread.run_sync(path.is_dir):
        requirements = environments.requirements(skill)
        try:
            await _fill(path, skill.name, requirements, source or PackageSource())
        except OSError as error:
            raise EnvironmentFailed.unwritable(skill.name, error) from error
    return await to_thread.run_sync(environments.find, skill)


async def _fill(path: Path, skill: str, requirements: tuple[str, ...], source: PackageSource) -> None:
    temporary = await to_thread.run_sync(TemporaryFolder.make, path.parent)
    try:
        await install_packages(temporary.path, skill, requirements, source)
        await to_thread.run_sync(harden, temporary.path, requirements)
        await to_thread.run_sync(temporary.put_in_place, path)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(temporary.remove)
