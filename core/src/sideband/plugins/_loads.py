"""What a plugin host tells about each load of a plugin, before it imports code, and about each failure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from attrs import frozen

from ..errors import SidebandError
from ._records import PluginRecord

__all__ = ["PluginLoad"]


@frozen
class PluginLoad:
    """A load of a plugin that begins or has failed.

    Attributes:
        record: the plugin.
        replaces: the version that runs, if this one is loaded to replace it.
        error: why the load failed; ``None`` before its code is imported.
    """

    record: PluginRecord
    replaces: str = ""
    error: SidebandError | None = None


OnLoad = Callable[[PluginLoad], Awaitable[None]]


async def ignore_load(_: PluginLoad) -> None:
    """Do nothing."""
