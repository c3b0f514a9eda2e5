"""The plugins and the op families of a host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from sideband.command_line import notice

if TYPE_CHECKING:
    from sideband import Host, SidebandError
    from sideband.ops import OpFamily
    from sideband.plugins import PluginHost
    from sideband.settings import LoadedSettings


class OpenPlugins(NamedTuple):
    """The plugins of a host that may be impossible to open.

    Attributes:
        plugins: the plugins.
        host: the host, or ``None`` if it cannot be opened. Its plugins are then open without store, ledger and broker.
        problems: why the host cannot be opened.
    """

    plugins: PluginHost
    host: Host | None
    problems: tuple[str, ...]

    async def load_all(self) -> None:
        """Import and validate all plugins. The record of an unusable one contains the reason."""
        from sideband.plugins import PluginError

        for record in self.plugins.records:
            if record.kind != "skill" and record.state.usable:
                with suppress(PluginError):
                    await self.load(record.kind, record.name)

    async def load(self, kind: str, name: str) -> None:
        """Import and validate a plugin, and activate it if the host is open: a lifespan may need the host.

        Raises:
            PluginError: if it is unusable.
        """
        await self.plugins.load(kind, name, activate=self.host is not None)


@asynccontextmanager
async def open_plugins(settings: LoadedSettings, *, reads_only: bool = False) -> AsyncIterator[OpenPlugins]:
    """Open a host, or else its plugins, to examine them even if the configuration or the store is broken.

    Args:
        settings: the settings.
        reads_only: see ``Host``.
    """
    from sideband import Host, SidebandError

    problems = [_described(problem) for problem in settings.problems]
    async with AsyncExitStack() as stack:
        host = None
        # Opening a host settles interrupted effects, which must not happen with a part of the configuration.
        if not problems:
            try:
                host = await stack.enter_async_context(Host(settings=settings, reads_only=reads_only))
            except SidebandError as error:
                problems.append(_described(error))
            except Exception as error:  # noqa: BLE001  the plugin of a store may raise anything
                problems.append(f"{type(error).__name__}: {error}")
        plugins = host.plugins if host is not None else await stack.enter_async_context(_plugin_host(settings))
        yield OpenPlugins(plugins, host, tuple(problems))


def _plugin_host(settings: LoadedSettings) -> PluginHost:
    from sideband.plugins import PluginHost
    from sideband.settings import default_home

    policy = settings.plugin_policy()._replace(strict=False)  # list broken plugins instead of raising
    return PluginHost(policy, home=default_home())


def _described(error: SidebandError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


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
