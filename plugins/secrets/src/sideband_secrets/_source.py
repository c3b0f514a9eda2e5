"""The source of all secrets of this plugin, which a host opens before its first effect and record."""

from __future__ import annotations

from attrs import define, field
from sideband.plugins import PluginContext

from ._state import Secrets


@define
class StoredSecrets:
    """A ``SecretSource``: the local store and the other configured sources."""

    name: str = field(default="secrets", init=False)
    _secrets: Secrets | None = field(default=None, init=False)

    @property
    def closed(self) -> str | None:
        """See ``SecretSource``."""
        return "it was not opened" if self._secrets is None else self._secrets.closed

    async def open(self, ctx: PluginContext) -> None:
        """See ``SecretSource``."""
        self._secrets = ctx.state
        await ctx.state.load()
