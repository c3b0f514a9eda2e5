"""Deprecations as data, so that what is overdue can be found by a test instead of by memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from attrs import frozen

__all__ = ["DEPRECATIONS", "Deprecation", "SidebandDeprecationWarning", "overdue", "warn_deprecated"]


class SidebandDeprecationWarning(DeprecationWarning):
    """Something that plugin authors use will be removed; the message says when, and what to use instead."""


@frozen
class Deprecation:
    """One thing that will go.

    Args:
        what: its public name.
        since: the version of ``sideband-core`` that deprecated it.
        removed_in: the first version that must not have it any more.
        instead: what to use.

    Example:
        >>> str(Deprecation(what="ctx.say", since="1.2", removed_in="2.0", instead="ctx.progress"))
        '`ctx.say` is deprecated since 1.2 and goes in 2.0; use ctx.progress'
    """

    what: str
    since: str
    removed_in: str
    instead: str

    def __str__(self) -> str:
        return f"`{self.what}` is deprecated since {self.since} and goes in {self.removed_in}; use {self.instead}"


DEPRECATIONS: tuple[Deprecation, ...] = ()
"""All that is deprecated now."""


def overdue(version: str, deprecations: Iterable[Deprecation] = DEPRECATIONS) -> tuple[Deprecation, ...]:
    """The deprecations that version ``version`` must not have any more.

    Example:
        >>> overdue("2.0.dev1", [Deprecation("ctx.say", "1.2", "2.0", "ctx.progress")])[0].what
        'ctx.say'
    """
    from packaging.version import Version

    # A pre-release of the version counts as it: it is where the removal has to happen.
    reached = Version(Version(version).base_version)
    return tuple(deprecation for deprecation in deprecations if Version(deprecation.removed_in) <= reached)


def warn_deprecated(deprecation: Deprecation, *, stacklevel: int = 1) -> None:
    """Warn whoever called the function that calls this; each more ``stacklevel`` is one caller further out."""
    warnings.warn(str(deprecation), SidebandDeprecationWarning, stacklevel=stacklevel + 2)
