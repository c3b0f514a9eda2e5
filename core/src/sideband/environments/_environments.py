"""Environments of skills: the packages that a skill depends on, in a folder named by what was asked for."""

from __future__ import annotations

import hashlib
import json
import sys
import sysconfig
from pathlib import Path

import anyio
from anyio import to_thread
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet

from ..loading import SkillError, SkillSpec
from ..state import TemporaryFolder
from ._content import Environment, read_environment, seal
from ._errors import EnvironmentFailed, EnvironmentMissing
from ._installing import PackageSource, install_packages

__all__ = ["EnvironmentMissing", "Environments"]

_PYTHON = ".".join(map(str, sys.version_info[:3]))
_LONGEST_QUOTED = 200


class Environments:
    """The environments of a host, ``HOME/envs/<digest>``.

    Equal requirements for the same interpreter and platform are installed once, and shared by the skills that have
    them. A folder that exists is complete.

    Args:
        home: the host's folder.

    Example:
        >>> async def install_all(host):
        ...     for skill in (await host.skills()).skills:
        ...         await host.environments.install(skill, PackageSource(wheels=Path("wheels")))
    """

    def __init__(self, home: Path) -> None:
        self.folder = home / "envs"

    def path(self, skill: SkillSpec) -> Path | None:
        """Where the skill's environment is, or will be; ``None`` if it needs none.

        Raises:
            SkillError: its requirements can't be understood, or it does not run on this version of Python.
        """
        _check_python(skill)
        if not skill.requirements:
            return None
        return self.folder / _digest(_wanted(skill))

    def require(self, skill: SkillSpec) -> Path | None:
        """The folder of the skill's environment; ``None`` if it needs none.

        Raises:
            EnvironmentMissing: it has not been installed.
            SkillError: see ``path``.
        """
        path = self.path(skill)
        if path is not None and not path.is_dir():
            raise EnvironmentMissing(skill.name, skill.requirements)
        return path

    def find(self, skill: SkillSpec) -> Environment | None:
        """The skill's environment with what is in it; ``None`` if it needs none or has none yet.

        Raises:
            SkillError: see ``path``.
        """
        path = self.path(skill)
        return read_environment(path) if path is not None and path.is_dir() else None

    async def install(self, skill: SkillSpec, source: PackageSource | None = None) -> Environment | None:
        """Install what the skill depends on, whole or not at all. What is there already stays as it is.

        Args:
            skill: whose packages.
            source: where they come from; ``None``: the index that uv is configured with, wheels only.

        Returns:
            The environment; ``None`` if the skill needs none.

        Raises:
            InstallerMissing: there is no uv.
            EnvironmentFailed: it could not be done; nothing of it is left.
            SkillError: see ``path``.
        """
        path = self.path(skill)
        if path is None:
            return None
        if not await to_thread.run_sync(path.is_dir):
            try:
                await self._install(skill, path, source or PackageSource())
            except OSError as error:
                raise EnvironmentFailed.unwritable(skill.name, error) from error
        return await to_thread.run_sync(read_environment, path)

    async def _install(self, skill: SkillSpec, path: Path, source: PackageSource) -> None:
        wanted = _wanted(skill)
        temporary = await to_thread.run_sync(TemporaryFolder.make, self.folder)
        try:
            await install_packages(temporary.path, skill.name, wanted, source)
            await to_thread.run_sync(seal, temporary.path, wanted)
            await to_thread.run_sync(temporary.put_in_place, path)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(temporary.remove)


def _check_python(skill: SkillSpec) -> None:
    try:
        fits = SpecifierSet(skill.requires_python).contains(_PYTHON, prereleases=True)
    except ValueError as error:
        # it is no specifier, or a number in it has thousands of digits
        problem = f"`{skill.requires_python[:_LONGEST_QUOTED]}` is no specifier of Python versions"
        raise SkillError(f"the skill `{skill.name}`: {problem}", hint='write for instance ">=3.11"') from error
    if not fits:
        raise SkillError(
            f"the skill `{skill.name}` runs on Python {skill.requires_python}, and this is {_PYTHON}",
            hint="run the host with a version of Python that fits",
        )


def _wanted(skill: SkillSpec) -> tuple[str, ...]:
    """What is to be installed, in one way of writing it."""
    try:
        requirements = [Requirement(text) for text in skill.requirements]
    except (InvalidRequirement, RecursionError) as error:
        raise SkillError(f"the skill `{skill.name}`: {error}", hint='write for instance "numpy>=2"') from error
    for requirement in requirements:
        # whatever loader it came from: a place could be any file or program of this machine
        if requirement.url is not None:
            raise SkillError(
                f"the skill `{skill.name}` depends on `{requirement}`, which names a place and not a package",
                hint="name a package and its versions; `--wheels DIR` can supply it",
            )
    return tuple(sorted({str(requirement) for requirement in requirements}))


def _digest(wanted: tuple[str, ...]) -> str:
    facts = ["sideband environment 1", sys.implementation.cache_tag, sysconfig.get_platform(), *wanted]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
