"""Errors of environments.

SidebandError
└── EnvironmentMissing(LookupError)           environment.missing
"""

from __future__ import annotations

from ..errors import SidebandError
from ..exit_codes import ExitCode


class EnvironmentMissing(SidebandError, LookupError):
    """The dependencies of a skill are not installed. The skill was not run."""

    code = "environment.missing"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, skill: str, requirements: tuple[str, ...]) -> None:
        super().__init__(
            f"the dependencies of the skill `{skill}` are not installed: {', '.join(requirements)}",
            hint=f"install them with `sideband skills install {skill}`",
        )
