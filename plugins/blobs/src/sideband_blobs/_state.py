"""The state of the plugin: the total size of all blobs."""

from __future__ import annotations

import anyio
from attrs import define, field
from sideband.ops import OpContext

from ._config import Config

_NO_LIMIT = 2**62


@define
class Blobs:
    """Caches the total size, so that `blobs.put` does not have to list all blobs each time.

    Blobs added by others (previous versions of files, downloads, other hosts) are only included when the total is
    computed again: on first use, and whenever the limit seems to be reached.

    Attributes:
        lock: held while adding or deleting, so that concurrent ops cannot exceed the limit.
    """

    config: Config
    lock: anyio.Lock = field(factory=anyio.Lock, init=False)
    _total: int | None = field(default=None, init=False)

    async def total_with(self, size: int, ctx: OpContext) -> int:
        """Return the total size of all blobs plus ``size``."""
        if self._total is None or self._total + size > self.config.max_total_bytes:
            self._total = sum(one.size for one in await ctx.blobs.list(limit=_NO_LIMIT))
        return self._total + size

    def added(self, size: int) -> None:
        """Update the total after adding a blob, or with a negative size after deleting one."""
        if self._total is not None:
            self._total += size
