"""What a call needs and was not installed.

SidebandError
└── EnvironmentMissing(LookupError)           environment.missing
"""

from __future__ import annotations

from ..errors import SidebandError
from ..exit_codes import ExitCode


class EnvironmentMissing(SidebandError, LookupError):
    """A skill depends on packages that have not been installed for it. Nothing has run."""

    code = "environment.missing"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, skill: str, requirements: tuple[str, ...]) -> None:
        super().__init__(
            f"the skill `{skill}` depends on packages that are not installed for it: {', '.join(requirements)}",
            hint=f"`sideband skills install {skill}` installs them",
        )
