"""The levels of ops, from harmless to unrestricted, and the rules that lower them for a part of an op's uses."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Final, Literal

from attrs import frozen

__all__ = ["LIMITED", "Level", "Lower"]


class Level(IntEnum):
    """The level of an op. From ``CONTROLLED`` on, the intent is flushed to disk before the effect.

    - ``SAFE``: has no effect outside the host.
    - ``MONITORED``: reads from outside the host, and is recorded.
    - ``CONTROLLED``: makes a change that can be reverted, or can carry data to any place.
    - ``RESTRICTED``: makes a change that cannot be reverted or that other people see.
    - ``PRIVILEGED``: can do anything.
    """

    SAFE = 0
    MONITORED = 1
    CONTROLLED = 2
    RESTRICTED = 3
    PRIVILEGED = 4


class _Marker(Enum):
    LIMITED = "limited"

    def __repr__(self) -> str:
        return self.name


LIMITED: Final = _Marker.LIMITED
"""In a rule: the capability lists the values of the field, none of which ends with ``*``."""


@frozen(init=False)
class Lower:
    """A rule that lowers the level of an op for some of its uses. It applies if all of its fields do.

    Args:
        level: the level of these uses, below that of the op.
        fields: by field of the scope: the values, one of which the use has, or ``LIMITED``. A capability alone has all
            values that it allows.

    Example:
        >>> Lower(Level.MONITORED, host=LIMITED, method=("GET", "HEAD"))
        Lower(level=<Level.MONITORED: 1>, fields=(('host', LIMITED), ('method', ('GET', 'HEAD'))))
    """

    level: Level
    fields: tuple[tuple[str, tuple[str, ...] | Literal[_Marker.LIMITED]], ...]

    def __init__(self, level: Level, /, **fields: tuple[str, ...] | Literal[_Marker.LIMITED]) -> None:
        if not isinstance(level, Level):
            raise TypeError(f"`Lower`: expected a Level such as Level.MONITORED, got {level!r}")
        self.__attrs_init__(level, tuple(sorted(fields.items())))

    def applies(self, limits: Mapping[str, tuple[str, ...]], requested: Mapping[str, str]) -> bool:
        """Return whether the rule applies to a use.

        Args:
            limits: the values of each field of the capability that lists them.
            requested: the fields of the requested scope; empty for all uses that the capability allows.
        """
        for name, allowed in self.fields:
            if allowed is LIMITED:
                if name not in limits:
                    return False
            elif name in requested:
                if requested[name] not in allowed:
                    return False
            elif not limits.get(name) or not set(limits[name]).issubset(allowed):
                return False
        return True
