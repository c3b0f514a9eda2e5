"""Errors of distributions.

DistError(SidebandError)                                 dist.failed
├── DistInvalid(ValueError)                              dist.invalid
├── DistRefused(RuntimeError)                            dist.refused
├── DistChanged(RuntimeError)                            dist.changed
└── InstallFailed(RuntimeError)                          dist.install
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sideband.errors import SidebandError
from sideband.exit_codes import ExitCode


class DistError(SidebandError):
    """A distribution cannot be locked, checked, installed or exported."""

    code = "dist.failed"
    exit_code = ExitCode.CONFIGURATION


class DistInvalid(DistError, ValueError):
    """A file of a distribution is missing, damaged, or does not fit the others."""

    code = "dist.invalid"

    def __init__(self, file: object, problem: str, *, hint: str) -> None:
        super().__init__(f"{file}: {problem}", hint=hint)
        self.file = str(file)


class DistRefused(DistError, RuntimeError):
    """The packages do not make a distribution that hosts would start with. Nothing was written.

    Attributes:
        problems: one message for each problem.
    """

    code = "dist.refused"

    def __init__(self, problems: Sequence[str], *, hint: str) -> None:
        super().__init__("the distribution cannot be locked: " + "; ".join(problems), hint=hint)
        self.problems = tuple(problems)

    def as_dict(self) -> dict[str, Any]:
        """See ``SidebandError``; with ``problems``."""
        return super().as_dict() | {"problems": list(self.problems)}


class DistChanged(DistError, RuntimeError):
    """An environment differs from the lock.

    Attributes:
        differences: one message for each difference.
    """

    code = "dist.changed"

    def __init__(self, environment: object, differences: Sequence[str]) -> None:
        super().__init__(
            f"{environment} differs from the lock: " + "; ".join(differences),
            hint="restore it with `sideband dist sync`, or lock the change with `sideband dist lock`",
        )
        self.differences = tuple(differences)

    def as_dict(self) -> dict[str, Any]:
        """See ``SidebandError``; with ``differences``."""
        return super().as_dict() | {"differences": list(self.differences)}


class InstallFailed(DistError, RuntimeError):
    """The program uv could not resolve, build or install packages. Nothing was changed."""

    code = "dist.install"
    retryable = True
    exit_code = ExitCode.UNAVAILABLE

    def __init__(self, what: str, output: str) -> None:
        super().__init__(
            f"uv could not {what}: {output}",
            hint="check the names and versions under `[dist.packages]`, and `indexes` and `wheels` under `[dist]`, "
            "which say where packages come from",
        )
