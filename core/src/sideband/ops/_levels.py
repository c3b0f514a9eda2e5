"""How much an op can do to the world, from nothing to anything."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Level"]


class Level(IntEnum):
    """The level of an op. CONTROLLED and higher have their intent on disk before the effect.

    - ``SAFE``: has no effect outside the host.
    - ``MONITORED``: reads the world; worth a record.
    - ``CONTROLLED``: changes something that can be changed back.
    - ``RESTRICTED``: changes something that can't, or that others see.
    - ``PRIVILEGED``: could do anything.
    """

    SAFE = 0
    MONITORED = 1
    CONTROLLED = 2
    RESTRICTED = 3
    PRIVILEGED = 4
