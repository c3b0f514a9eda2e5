"""Errors of installing a skill's packages.

    SidebandError
    ├── InstallerMissing(LookupError)             environment.no_installer
    └── EnvironmentFailed(RuntimeError)           environment.failed
                                                  environment.packages, .network, .disk, .build,
                                                  .unwritable, .content, .size

When one of them is raised, everything that was installed has been removed.
"""

from __future__ import annotations

from sideband import SidebandError
from sideband.exit_codes import ExitCode

# Fragments of uv's output and the kind of failure that they indicate; the first match is used.
_SIGNS = (
    ("No space left on device", "disk"),
    ("no space left on device", "disk"),
    ("ENOSPC", "disk"),
    ("E404", "packages"),
    ("ETARGET", "packages"),
    ("ENOTFOUND", "network"),
    ("ECONNREFUSED", "network"),
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
    "disk": "free disk space for SIDEBAND_HOME and for uv's cache, then try again",
    "network": "check that the index is reachable, or install from a folder of wheels: `--wheels DIR`",
    "build": "choose a version with a wheel for this platform; `--build` runs the package's own code with your rights",
    "packages": "change the requirements, or use a folder or index that has the packages",
    "failed": "check the output and try again",
}


class InstallerMissing(SidebandError, LookupError):
    """The program uv, which installs packages, was not found."""

    code = "environment.no_installer"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self) -> None:
        super().__init__(
            "uv, which installs packages, was not found in this Python environment or on the PATH",
            hint="pip install uv",
        )


class EnvironmentFailed(SidebandError, RuntimeError):
    """The packages of a skill could not be installed. Existing environments are unchanged."""

    code = "environment.failed"

    @classmethod
    def of_installer(cls, program: str, owner: str, exit_code: int, output: list[str]) -> EnvironmentFailed:
        """Build the error for a failure of uv, or of another program.

        Args:
            program: its name.
            owner: what the packages are for, such as "skill `a`".
            exit_code: its exit code, negative if a signal killed it.
            output: the lines that it wrote.
        """
        begin = next((number for number, line in enumerate(output) if line.startswith("error:")), 0)
        message = " ".join(" ".join(output[begin:]).removeprefix("error: ").split())[:2_000]
        died = f"{program} was killed by signal {-exit_code}"
        ended = died if exit_code < 0 else f"{program} exited with code {exit_code}"
        kind = next((kind for sign, kind in _SIGNS if sign in message), "failed")
        return cls(
            f"failed to install the packages of {owner}: {message or ended}",
            hint=_HINTS[kind],
            code=f"environment.{kind}",
        )

    @classmethod
    def unwritable(cls, owner: str, error: OSError) -> EnvironmentFailed:
        """Build the error for a host folder that cannot be written."""
        return cls(
            f"failed to install the packages of {owner}: {error.filename or 'the folder'}: {error.strerror or error}",
            hint="check free space and permissions, or set SIDEBAND_HOME to a writable folder",
            code="environment.unwritable",
        )

    @classmethod
    def too_large(cls, owner: str, size: int, files: int) -> EnvironmentFailed:
        """Build the error for packages that exceed the limits.

        Args:
            owner: what the packages are for.
            size: the maximum unpacked size in bytes.
            files: the maximum number of files.
        """
        return cls(
            f"the packages of {owner} exceed the limit of {size:,} bytes or {files:,} files when unpacked",
            hint="check the packages: a small wheel of this size may be hostile; `max_bytes` of the source limits it",
            code="environment.size",
        )

    @classmethod
    def odd_file(cls, name: str) -> EnvironmentFailed:
        """Build the error for an installed path that is neither a file nor a folder."""
        return cls(
            f"the installed packages contain `{name}`, which is neither a file nor a folder",
            hint="find the package that contains it and remove that requirement",
            code="environment.content",
        )
