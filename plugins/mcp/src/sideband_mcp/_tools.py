"""The plugin of the group `sideband.v1.tool`: each server is a source of tools."""

from __future__ import annotations

from sideband.tools import Tool

from ._config import Config
from ._resource_tool import resource
from ._source import ServerSource


def sideband_tools(config: Config | None = None) -> list[ServerSource | Tool]:
    """Return a source for each server, and the tool for their resources."""
    if config is None:
        return []
    found = [ServerSource(name, one) for name, one in config.servers.items() if not one.disabled]
    return [*found, resource] if found else []
