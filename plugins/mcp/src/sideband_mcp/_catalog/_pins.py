"""The definitions that the user accepted, in the store of the host."""

from __future__ import annotations

from attrs import field, frozen
from sideband.store import Store

from .._models import ToolDefinition


@frozen
class Pin:
    """What the user accepted of a server.

    Attributes:
        catalog: the digest of what the server offered at that time; empty if nothing was accepted.
        tools: the definitions, sorted by name.
        features: what it offers besides tools.
    """

    catalog: str = ""
    tools: tuple[ToolDefinition, ...] = ()
    features: tuple[str, ...] = ()

    def accepts(self, one: ToolDefinition) -> bool:
        """Return whether this definition was accepted."""
        return one in self.tools


@frozen
class Pins:
    """The pins of all servers of a host."""

    store: Store = field(repr=False)

    async def of(self, server: str) -> Pin:
        """Return what the user accepted of a server."""
        found = await self.store.get(_key(server))
        if found is None:
            return Pin()
        tools = tuple(ToolDefinition.model_validate(one) for one in found.value["tools"])
        return Pin(found.value["catalog"], tools, tuple(found.value["features"]))

    async def accept(self, server: str, pin: Pin) -> None:
        """Replace what the user accepted of a server."""
        tools = [one.model_dump() for one in pin.tools]
        await self.store.put(_key(server), {"catalog": pin.catalog, "tools": tools, "features": list(pin.features)})

    async def forget(self, server: str) -> None:
        """Forget what the user accepted of a server."""
        await self.store.delete(_key(server))


def _key(server: str) -> str:
    return f"accepted/{server}"
