"""Environments of skills: the packages that a skill depends on, in a folder named by what was asked for."""

from __future__ import annotations

import hashlib
import json
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from attrs import Factory, frozen
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet

from ..loading import SkillError, SkillSpec
from ._errors import EnvironmentMissing

_PYTHON = ".".join(map(str, sys.version_info[:3]))
_LONGEST_QUOTED = 200
_RECORD = "sideband-environment.json"


@frozen
class Environment:
    """The packages that are installed for the skills that depend on them.

    Args:
        path: the folder that holds them.
        requirements: what was asked for.
        packages: the version of each package that is there, by its name.
    """

    path: Path
    requirements: tuple[str, ...] = ()
    packages: Mapping[str, str] = Factory(dict)

    @classmethod
    def read(cls, path: Path) -> Environment:
        """What is in an environment, as recorded when it was made."""
        try:
            record = json.loads((path / _RECORD).read_text(encoding="utf-8"))
            return cls(path, tuple(record["requirements"]), dict(record["packages"]))
        except (OSError, ValueError, KeyError, TypeError):
            # somebody else made the folder; what is in it can still be used
            return cls(path)

    def record(self) -> None:
        """Write into the folder what is in it, for ``read``.

        Raises:
            OSError: it can't be written.
        """
        record = {"requirements": self.requirements, "packages": self.packages}
        (self.path / _RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


class Environments:
    """The environments of a host, ``HOME/envs/<digest>``.

    Equal requirements for the same interpreter and platform are installed once, and shared by the skills that have
    them. A folder that exists is complete. The library ``sideband_skill_packages`` fills them.

    Args:
        home: the host's folder.

    Example:
        >>> async def packages(host, skill):
        ...     environment = host.environments.find(skill)
        ...     return environment.packages if environment else {}
    """

    def __init__(self, home: Path) -> None:
        self.folder = home / "envs"

    def path(self, skill: SkillSpec) -> Path | None:
        """Where the skill's environment is, or will be; ``None`` if it needs none.

        Raises:
            SkillError: its requirements can't be understood, or it does not run on this version of Python.
        """
        requirements = self.requirements(skill)
        return self.folder / _digest(requirements) if requirements else None

    def requirements(self, skill: SkillSpec) -> tuple[str, ...]:
        """The requirements of the skill, each once and in one way of writing it.

        Raises:
            SkillError: see ``path``.
        """
        _check_python(skill)
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
        return Environment.read(path) if path is not None and path.is_dir() else None


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


def _digest(requirements: tuple[str, ...]) -> str:
    facts = ["sideband environment 1", sys.implementation.cache_tag, sysconfig.get_platform(), *requirements]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
