"""Install the packages of a skill, all or nothing."""

from __future__ import annotations

from pathlib import Path

import anyio
from anyio import to_thread
from sideband.environments import Environment, Environments
from sideband.loading import SkillSpec
from sideband.state import TemporaryFolder, remove_temporary_folders

from ._errors import EnvironmentFailed
from ._hardening import harden
from ._uv import PackageSource, install_packages


async def install(
    environments: Environments, skill: SkillSpec, source: PackageSource | None = None
) -> Environment | None:
    """Install the packages that a skill depends on, all or nothing. An existing environment is not changed.

    Args:
        environments: the environments of a host, ``host.environments``.
        skill: the skill whose packages are installed.
        source: where the packages come from; by default the index that uv is configured with, wheels only.

    Returns:
        The environment, or ``None`` if the skill needs none.

    Raises:
        InstallerMissing: if uv was not found.
        EnvironmentFailed: if the installation failed; everything that was installed has been removed.
        SkillError: if the requirements are invalid, or the skill does not support this version of Python.

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
            raise EnvironmentFailed.unwritable(f"skill `{skill.name}`", error) from error
    return await to_thread.run_sync(environments.find, skill)


async def _fill(path: Path, skill: str, requirements: tuple[str, ...], source: PackageSource) -> None:
    await to_thread.run_sync(remove_temporary_folders, path.parent)
    temporary = await to_thread.run_sync(TemporaryFolder.make, path.parent)
    try:
        await install_packages(temporary.path, skill, requirements, source)
        await to_thread.run_sync(harden, temporary.path, requirements)
        await to_thread.run_sync(temporary.put_in_place, path)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(temporary.remove)
