"""The plugins and the op families of a host."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from .._terminal._printing import notice

if TYPE_CHECKING:
    from sideband import Host
    from sideband.ops import OpFamily


async def load_plugins(host: Host) -> None:
    """Import and validate all plugins. The record of an unusable one contains the reason."""
    from sideband.plugins import PluginError

    for record in host.plugins.records:
        if record.kind != "skill" and record.state.usable:
            with suppress(PluginError):
                await host.plugins.load(record.kind, record.name)


async def op_families(host: Host) -> list[OpFamily]:
    """Return all usable op families, and print a notice for each of the others."""
    from sideband.plugins import PluginError

    found = []
    for name in host.plugins.names("op"):
        try:
            found.append((await host.broker.ops.plugin(name)).contribution)
        except PluginError as error:
            notice(f"notice: {error.message}")
    return found
