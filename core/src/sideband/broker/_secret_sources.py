"""The sources of secrets of a host, opened before its first effect and record."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import anyio
from attrs import define, field

from ..contexts import SecretSource
from ..errors import SidebandError
from ..ops import SecretsClosed
from ..plugins import LoadedPlugin, PluginError, PluginHost

_log = logging.getLogger("sideband")
_OPEN_SECONDS = 15.0


@define(eq=False)
class SecretSources:
    """The sources of a host.

    Args:
        plugins: the plugin host.
        home: the state folder. A plugin with a subfolder is in use.
        required: whether all of them must be open before data is sent anywhere.
    """

    _plugins: PluginHost
    _home: Path
    _required: bool
    _sources: list[SecretSource] = field(factory=list, init=False)
    _failed: dict[str, str] = field(factory=dict, init=False)

    @property
    def closed(self) -> Mapping[str, str]:
        """The sources whose values are not all known, each with the reason."""
        found = {source.name: reason for source in self._sources if (reason := source.closed) is not None}
        return {**self._failed, **found} if self._failed else found

    def any_closed(self) -> bool:
        """Return whether some values are unknown."""
        return bool(self._failed) or not all(source.closed is None for source in self._sources)

    def check(self, op: str) -> None:
        """Check that data may be sent.

        Raises:
            SecretsClosed: if a source is closed, and the policy requires that all are open.
        """
        if self._required and (closed := self.closed):
            raise SecretsClosed(op, closed)

    async def open(self) -> None:
        """Open the sources of all plugins in use. A source that fails is closed."""
        for record in self._plugins.records:
            name = record.name
            if record.kind != "secrets" or not (name in self._plugins.policy.config or (self._home / name).exists()):
                continue
            try:
                plugin = await self._plugins.load("secrets", name)
            except PluginError as error:
                self._failed[name] = error.message
                continue
            for source in plugin.contribution:
                await self._open(source, plugin)
        self._plugins.check_strict()
        for name, reason in self.closed.items():
            _log.info("the source of secrets `%s` is closed: %s", name, reason)

    async def _open(self, source: SecretSource, plugin: LoadedPlugin) -> None:
        self._sources.append(source)
        problem = f"it did not open within {_OPEN_SECONDS:g} s"
        try:
            with anyio.move_on_after(_OPEN_SECONDS) as scope:
                await source.open(plugin.context)
        except (Exception, SystemExit) as error:  # noqa: BLE001  a source may raise anything
            # Other messages may contain a value.
            problem = error.message if isinstance(error, SidebandError) else f"it raised {type(error).__name__}"
        else:
            if not scope.cancelled_caught:
                return
        if source.closed is None:
            self._failed[source.name] = problem
