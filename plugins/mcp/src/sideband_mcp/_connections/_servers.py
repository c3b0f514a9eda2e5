"""The servers of a host."""

from __future__ import annotations

from collections import Counter

from anyio.abc import TaskGroup
from attrs import define, field
from sideband.plugins import PluginContext

from .._catalog import Pins
from .._config import Config, ServerConfig
from .._errors import McpServerUnknown, McpUnavailable
from .._oauth._logins import Logins
from .._oauth._pending import PendingLogins
from .._packages import ServerPackages
from ._server import Server


@define(eq=False)
class Servers:
    """The servers of a host, and what the user accepted of them.

    Args:
        config: the servers and limits.
        tasks: runs the connections.
        pins: what the user accepted.
        own: the context of the plugin, which resolves secrets.

    Attributes:
        packages: the packages that servers need.
        pending: the logins that wait for a person.
    """

    config: Config = field(repr=False)
    tasks: TaskGroup = field(repr=False)
    pins: Pins = field(repr=False)
    own: PluginContext = field(repr=False)
    packages: ServerPackages = field(init=False, repr=False)
    pending: PendingLogins = field(init=False, repr=False)
    _servers: dict[str, Server] = field(init=False, factory=dict)
    _of_clients: dict[str, ServerConfig] = field(init=False, factory=dict, repr=False)
    _sessions: Counter[str] = field(init=False, factory=Counter)

    @packages.default
    def _make_packages(self) -> ServerPackages:
        return ServerPackages(self.own.home, self.own.store)

    @pending.default
    def _make_pending(self) -> PendingLogins:
        return PendingLogins(self.tasks, Logins(self.own))

    def get(self, name: str) -> Server:
        """Return a server.

        Raises:
            McpServerUnknown: if it is neither configured nor passed by a client, or disabled.
        """
        settings = self.config.servers.get(name) or self._of_clients.get(name)
        if settings is None or settings.disabled:
            raise McpServerUnknown(name)
        if name not in self._servers:
            self._servers[name] = Server(name, settings, self.config, self.tasks, self.own)
        return self._servers[name]

    def add(self, name: str, settings: ServerConfig) -> None:
        """Add a server that a client passes for one session.

        Raises:
            McpUnavailable: if another server has its name.
        """
        known = self.config.servers.get(name) or self._of_clients.get(name, settings)
        if known != settings:
            raise McpUnavailable(name, "another server has its name", hint="close the other session first")
        self._of_clients[name] = settings
        self._sessions[name] += 1

    async def remove(self, name: str) -> None:
        """Remove a server of a client from a session. With the last one, it is closed."""
        self._sessions[name] -= 1
        if not self._sessions[name]:
            del self._of_clients[name], self._sessions[name]
            if (server := self._servers.pop(name, None)) is not None:
                server.pool.close()

    def close(self) -> None:
        """Begin to close all connections."""
        for one in self._servers.values():
            one.pool.close()

    async def closed(self) -> None:
        """Return when all connections are closed."""
        for one in self._servers.values():
            await one.pool.closed()
