"""The tools of a host, including those of sources, which list them at their own pace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from sideband import Host

_SECONDS = 30.0
"""The maximum time to wait for sources. It is as long as one may take to list its tools."""


async def list_tools(host: Host) -> None:
    """Load all tools and wait until the sources have listed theirs, but not for a source that does not answer."""
    await host.tools.view()
    with anyio.move_on_after(_SECONDS):
        await host.tools.wait_for_sources()
