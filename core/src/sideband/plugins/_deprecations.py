"""Deprecations as data, so that a test can find overdue ones."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from attrs import frozen

__all__ = ["DEPRECATIONS", "Deprecation", "SidebandDeprecationWarning", "overdue", "warn_deprecated"]


class SidebandDeprecationWarning(DeprecationWarning):
    """A part of the plugin API will be removed; the message names the version and the replacement."""


@frozen
class Deprecation:
    """One deprecated name.

    Args:
        what: the public name.
        since: the version of ``sideband-core`` that deprecated it.
        removed_in: the version that removes it.
        instead: the replacement.

    Example:
        >>> str(Deprecation(what="ctx.say", since="1.2", removed_in="2.0", instead="ctx.progress"))
        '`ctx.say` is deprecated since 1.2 and will be removed in 2.0; use ctx.progress'
    """

    what: str
    since: str
    removed_in: str
    instead: str

    def __str__(self) -> str:
        return (
            f"`{self.what}` is deprecated since {self.since} and will be removed in {self.removed_in}; "
            f"use {self.instead}"
        )


DEPRECATIONS: tuple[Deprecation, ...] = ()
"""All current deprecations."""


def overdue(version: str, deprecations: Iterable[Deprecation] = DEPRECATIONS) -> tuple[Deprecation, ...]:
    """Return the deprecations that must have been removed in ``version``.

    Example:
        >>> overdue("2.0.dev1", [Deprecation("ctx.say", "1.2", "2.0", "ctx.progress")])[0].what
        'ctx.say'
    """
    from packaging.version import Version

    # A pre-release counts as its final version, because the removal must happen before the release.
    reached = Version(Version(version).base_version)
    return tuple(deprecation for deprecation in deprecations if Version(deprecation.removed_in) <= reached)


def warn_deprecated(deprecation: Deprecation, *, stacklevel: int = 1) -> None:
    """Warn the caller of the calling function. Increase ``stacklevel`` by 1 for each further stack frame."""
    warnings.warn(str(deprecation), SidebandDeprecationWarning, stacklevel=stacklevel + 2)
