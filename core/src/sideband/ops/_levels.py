"""The levels of ops, from harmless to unrestricted."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Level"]


class Level(IntEnum):
    """The level of an op. From ``CONTROLLED`` on, the intent is flushed to disk before the effect.

    - ``SAFE``: has no effect outside the host.
    - ``MONITORED``: reads from outside the host, and is recorded.
    - ``CONTROLLED``: makes a change that can be reverted.
    - ``RESTRICTED``: makes a change that cannot be reverted or that other people see.
    - ``PRIVILEGED``: can do anything.
    """

    SAFE = 0
    MONITORED = 1
    CONTROLLED = 2
    RESTRICTED = 3
    PRIVILEGED = 4
