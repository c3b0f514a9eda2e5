"""Errors of the fixtures.

SidebandError
└── KitError                              testing.failed
    └── ArgumentInvalid(ValueError)       testing.argument
"""

from __future__ import annotations

from sideband import SidebandError


class KitError(SidebandError):
    """A fixture of the testing kit failed. The message includes the remedy, since pytest shows only messages."""

    code = "testing.failed"

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(f"{problem}: {hint}", hint=hint)


class ArgumentInvalid(KitError, ValueError):
    """A fixture was called with an argument that it cannot use."""

    code = "testing.argument"

    def __init__(self, fixture: str, argument: str, problem: str, *, hint: str) -> None:
        super().__init__(f"`{fixture}`: `{argument}`: {problem}", hint=hint)
