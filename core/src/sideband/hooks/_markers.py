"""The decorator that makes a function an implementation of a hook."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

import pluggy
from attrs import frozen

__all__ = ["PROJECT", "Wishes", "hookimpl", "wishes_of"]

PROJECT = "sideband"

F = TypeVar("F", bound=Callable[..., Any])

_pluggy_hookimpl = pluggy.HookimplMarker(PROJECT)
_ATTRIBUTE = "sideband_wishes"


@frozen
class Wishes:
    """Where an implementation wants to stand among the others of its phase."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@overload
def hookimpl(function: F, /) -> F: ...
@overload
def hookimpl(*, before: str | Iterable[str] = (), after: str | Iterable[str] = ()) -> Callable[[F], F]: ...
def hookimpl(
    function: Callable[..., Any] | None = None,
    /,
    *,
    before: str | Iterable[str] = (),
    after: str | Iterable[str] = (),
) -> Callable[..., Any]:
    """Make a function implement the hook that it is named after.

    It takes ``(event)`` or ``(event, ctx)``, and may be ``async def`` or ``def``. A ``def`` must not block, as nothing
    can interrupt it. Below ``@staticmethod`` and ``@classmethod`` it comes first: they wrap what it returns.

    Args:
        function: the function.
        before: the plugins (entry-point names) that must come later. Those that are not there are ignored.
        after: the plugins that must come earlier.

    Example:
        >>> @hookimpl(after="guard-loop")
        ... async def tool_call(event, ctx):
        ...     return None
    """
    wishes = Wishes(_names("before", before), _names("after", after))

    def mark(target: F) -> F:
        setattr(target, _ATTRIBUTE, wishes)
        return _pluggy_hookimpl(target)

    return mark if function is None else mark(function)


def _names(argument: str, value: str | Iterable[str]) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(name, str) and name for name in names):
        raise TypeError(f"hookimpl: `{argument}` takes names of plugins, not {value!r}")
    return names


def wishes_of(function: object) -> Wishes | None:
    """Where a marked function wants to stand; ``None`` if it is not marked by ``hookimpl``."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, Wishes) else None
