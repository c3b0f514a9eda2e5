"""Environments of skills: the packages that a skill depends on, in a folder named by what was asked for."""

from __future__ import annotations

import hashlib
import json
import sys
import sysconfig
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from ._errors import SidebandError
from .loading import SkillError, SkillSpec

__all__ = ["EnvironmentMissing", "Environments"]


class EnvironmentMissing(SidebandError, LookupError):
    """A skill depends on packages that have not been installed for it. Nothing has run."""

    code = "environment.missing"
    exit_code = 5

    def __init__(self, skill: str, requirements: tuple[str, ...]) -> None:
        super().__init__(
            f"the skill `{skill}` depends on packages that are not installed for it: {', '.join(requirements)}",
            hint=f"`sideband skills install {skill}` installs them",
        )


class Environments:
    """The environments of a host, ``HOME/envs/<digest>``.

    Equal requirements for the same interpreter and platform are installed once, and shared by the skills that have
    them. A folder that exists is complete.

    Args:
        home: the host's folder.
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
        return self.folder / _digest(skill)

    def require(self, skill: SkillSpec) -> Path | None:
        """The skill's environment; ``None`` if it needs none.

        Raises:
            EnvironmentMissing: it has not been installed.
            SkillError: see ``path``.
        """
        path = self.path(skill)
        if path is not None and not path.is_dir():
            raise EnvironmentMissing(skill.name, skill.requirements)
        return path


def _check_python(skill: SkillSpec) -> None:
    try:
        fits = SpecifierSet(skill.requires_python).contains(sys.version.split()[0], prereleases=True)
    except InvalidSpecifier as error:
        problem = f"`{skill.requires_python}` is no specifier of Python versions"
        raise SkillError(f"the skill `{skill.name}`: {problem}", hint='write for instance ">=3.11"') from error
    if not fits:
        raise SkillError(
            f"the skill `{skill.name}` runs on Python {skill.requires_python}, and this is {sys.version.split()[0]}",
            hint="run the host with a version of Python that fits",
        )


def _digest(skill: SkillSpec) -> str:
    try:
        wanted = sorted({str(Requirement(text)) for text in skill.requirements})
    except InvalidRequirement as error:
        raise SkillError(f"the skill `{skill.name}`: {error}", hint='write for instance "numpy>=2"') from error
    facts = ["sideband environment 1", sys.implementation.cache_tag, sysconfig.get_platform(), *wanted]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
