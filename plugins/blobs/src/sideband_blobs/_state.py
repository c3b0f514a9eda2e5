"""The state of the plugin: how much all blobs are together."""

from __future__ import annotations

import anyio
from attrs import define, field
from sideband.ops import OpContext

from ._config import Config

_ALL = 2**62


@define
class Blobs:
    """Counts what is kept, so that not each `blobs.put` has to look at all of it.

    What others add (before-images of files, downloads, other hosts) is seen when it is counted anew: at the first
    use, and whenever the limit seems to be reached.

    Attributes:
        adding: held by who adds or deletes, so that two do not fill the last place.
    """

    config: Config
    adding: anyio.Lock = field(factory=anyio.Lock, init=False)
    _total: int | None = field(default=None, init=False)

    async def total_with(self, size: int, ctx: OpContext) -> int:
        """The bytes of all blobs and so many more."""
        if self._total is None or self._total + size > self.config.max_total_bytes:
            self._total = sum(one.size for one in await ctx.blobs.list(limit=_ALL))
        return self._total + size

    def added(self, size: int) -> None:
        """There is a blob more, or with a negative size one less."""
        if self._total is not None:
            self._total += size
