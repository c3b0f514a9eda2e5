"""Environments of skills: folders with the dependencies of a skill, named by the digest of its requirements."""

from __future__ import annotations

import hashlib
import json
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from attrs import Factory, frozen

from ..loading import SkillError, SkillSpec
from ._errors import EnvironmentMissing

_PYTHON = ".".join(map(str, sys.version_info[:3]))
_MAX_QUOTED = 200
_RECORD = "sideband-environment.json"


@frozen
class Environment:
    """The packages that are installed for skills with equal requirements.

    Args:
        path: the folder that contains the packages.
        requirements: the requirements.
        packages: the version of each installed package, by name.
    """

    path: Path
    requirements: tuple[str, ...] = ()
    packages: Mapping[str, str] = Factory(dict)

    @classmethod
    def read(cls, path: Path) -> Environment:
        """Read the record that was written when the environment was created."""
        try:
            record = json.loads((path / _RECORD).read_text(encoding="utf-8"))
            return cls(path, tuple(record["requirements"]), dict(record["packages"]))
        except (OSError, ValueError, KeyError, TypeError):
            # Another program created the folder; its packages can still be used.
            return cls(path)

    def record(self) -> None:
        """Write the record of the environment into its folder, for ``read``.

        Raises:
            OSError: if the record cannot be written.
        """
        record = {"requirements": self.requirements, "packages": self.packages}
        (self.path / _RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


class Environments:
    """The environments of a host, ``SIDEBAND_HOME/envs/<digest>``.

    Equal requirements for the same interpreter and platform are installed once and shared by all skills that have
    them. A folder that exists is complete. The library ``sideband_skill_packages`` creates the folders.

    Args:
        home: the host's state folder.

    Example:
        >>> async def packages(host, skill):
        ...     environment = host.environments.find(skill)
        ...     return environment.packages if environment else {}
    """

    def __init__(self, home: Path) -> None:
        self.folder = home / "envs"

    def path(self, skill: SkillSpec) -> Path | None:
        """Return the path of the skill's environment, which may not exist yet; ``None`` without requirements.

        Raises:
            SkillError: if its requirements are invalid, or it does not support this version of Python.
        """
        requirements = self.requirements(skill)
        return self.folder / _digest(requirements) if requirements else None

    def requirements(self, skill: SkillSpec) -> tuple[str, ...]:
        """Return the distinct requirements of the skill, normalized and sorted.

        Raises:
            SkillError: see ``path``.
        """
        _check_python(skill)
        if not skill.requirements:
            return ()
        from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415  slow to import

        try:
            requirements = [Requirement(text) for text in skill.requirements]
        except (InvalidRequirement, RecursionError) as error:
            raise SkillError(f"the skill `{skill.name}`: {error}", hint='write, for example, "numpy>=2"') from error
        for requirement in requirements:
            # A URL could be any file or program on this machine.
            if requirement.url is not None:
                raise SkillError(
                    f"the skill `{skill.name}` has a requirement with a URL, which is not supported: `{requirement}`",
                    hint="use the name and version of a package; `--wheels DIR` can provide it",
                )
        return tuple(sorted({str(requirement) for requirement in requirements}))

    def require(self, skill: SkillSpec) -> Path | None:
        """Return the folder of the skill's environment; ``None`` without requirements.

        Raises:
            EnvironmentMissing: if it is not installed.
            SkillError: see ``path``.
        """
        path = self.path(skill)
        if path is not None and not path.is_dir():
            raise EnvironmentMissing(skill.name, skill.requirements)
        return path

    def find(self, skill: SkillSpec) -> Environment | None:
        """Return the skill's environment; ``None`` if it is not installed, or without requirements.

        Raises:
            SkillError: see ``path``.
        """
        path = self.path(skill)
        return Environment.read(path) if path is not None and path.is_dir() else None


def _check_python(skill: SkillSpec) -> None:
    if not skill.requires_python:
        return
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415  slow to import, and rarely needed

    try:
        fits = SpecifierSet(skill.requires_python).contains(_PYTHON, prereleases=True)
    except ValueError as error:
        # Raised for an invalid specifier, and for a number with thousands of digits.
        problem = f"invalid Python version specifier `{skill.requires_python[:_MAX_QUOTED]}`"
        raise SkillError(f"the skill `{skill.name}`: {problem}", hint='write, for example, ">=3.11"') from error
    if not fits:
        raise SkillError(
            f"the skill `{skill.name}` requires Python {skill.requires_python}, but the host runs on {_PYTHON}",
            hint="run the host with a compatible version of Python",
        )


def _digest(requirements: tuple[str, ...]) -> str:
    facts = ["sideband environment 1", sys.implementation.cache_tag, sysconfig.get_platform(), *requirements]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
