"""What can go wrong when the packages of a skill are installed.

    SidebandError
    ├── InstallerMissing(LookupError)             environment.no_installer
    └── EnvironmentFailed(RuntimeError)           environment.failed
                                                  environment.packages, .network, .disk, .build,
                                                  .unwritable, .content

After each of them nothing is left that was not there before.
"""

from __future__ import annotations

from sideband import SidebandError
from sideband.exit_codes import ExitCode

# What uv says, and the kind of failure that it is; the first that fits counts.
_SIGNS = (
    ("No space left on device", "disk"),
    ("Disk quota exceeded", "disk"),
    ("network was disabled", "network"),
    ("Failed to fetch", "network"),
    ("Failed to download:", "network"),
    ("error sending request", "network"),
    ("building from source is disabled", "build"),
    ("No solution found", "packages"),
    ("was included as a URL dependency", "packages"),
)
_HINTS = {
    "disk": "make room on the disk of SIDEBAND_HOME and on that of uv's cache, and try again",
    "network": "see whether the index can be reached, or install from a folder of wheels: `--wheels DIR`",
    "build": "choose a version with a wheel for this platform; `--build` runs the package's own code with your rights",
    "packages": "change what the skill depends on, or let another folder or index supply it",
    "failed": "see what uv says, and try again",
}


class InstallerMissing(SidebandError, LookupError):
    """There is no uv, which installs packages."""

    code = "environment.no_installer"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self) -> None:
        super().__init__(
            "packages of skills are installed with uv, and there is none: neither as a package of this Python nor on "
            "the PATH",
            hint="pip install uv",
        )


class EnvironmentFailed(SidebandError, RuntimeError):
    """The packages of a skill could not be installed. Nothing of them is left, and what was there is untouched."""

    code = "environment.failed"

    @classmethod
    def of_uv(cls, skill: str, exit_code: int, output: list[str]) -> EnvironmentFailed:
        """The failure that uv reported.

        Args:
            skill: whose packages.
            exit_code: uv's, negative for the signal that ended it.
            output: the lines that it wrote.
        """
        begin = next((number for number, line in enumerate(output) if line.startswith("error:")), 0)
        said = " ".join(" ".join(output[begin:]).removeprefix("error: ").split())[:2_000]
        ended = f"signal {-exit_code} ended uv" if exit_code < 0 else f"uv ended with {exit_code}"
        kind = next((kind for sign, kind in _SIGNS if sign in said), "failed")
        return cls(
            f"the packages of the skill `{skill}` can't be installed: {said or ended}",
            hint=_HINTS[kind],
            code=f"environment.{kind}",
        )

    @classmethod
    def unwritable(cls, skill: str, error: OSError) -> EnvironmentFailed:
        """The host's own folders can't be written."""
        return cls(
            f"the packages of the skill `{skill}` can't be installed: {error.filename or 'the folder'}: "
            f"{error.strerror or error}",
            hint="make room and give yourself the right, or set SIDEBAND_HOME to a folder that you can write to",
            code="environment.unwritable",
        )

    @classmethod
    def odd_file(cls, name: str) -> EnvironmentFailed:
        """What was installed has something in it that is neither a file nor a folder."""
        return cls(
            f"what was installed holds `{name}`, which is neither a file nor a folder, and is not used",
            hint="find out which package brings it, and do without that package",
            code="environment.content",
        )
