"""Open the store of a host."""

from __future__ import annotations

from collections.abc import Container
from contextlib import AsyncExitStack
from pathlib import Path

from ..errors import ConfigurationError, SidebandError
from ..plugins import PluginHost, PluginInvalid
from ..plugins._exits import enter
from ..plugins._objects import describe
from ..state import make_home
from ..store import Store, StoreSpec

_DEFAULT = "sqlite"


async def open_store(
    plugins: PluginHost, folder: Path, stack: AsyncExitStack, *, configured: Container[str], autoload: bool
) -> Store:
    """Open the store plugin that has a table ``[plugins.NAME]``; without one ``sqlite``, or the only one.

    Args:
        plugins: the plugins of the host.
        folder: the folder for its data, which is created.
        stack: closes it.
        configured: the plugins that have a table.
        autoload: whether installed plugins are used, for the message.

    Raises:
        ConfigurationError: if no store plugin is installed, or if it is unclear which of several to use.
        PluginInvalid: if it cannot be opened.
    """
    installed = plugins.names("store", broken=True)
    chosen = [one for one in installed if one in configured] or [one for one in installed if one == _DEFAULT]
    names = chosen or plugins.names("store") or installed
    if len(names) != 1:
        if names:
            claims = (
                f"`{one.name}` of {one.claim}" for one in plugins.records if one.kind == "store" and one.name in names
            )
            problem = f"it is unclear which store to use: {', '.join(claims)}"
            hint = (
                "configure only this one, under `[plugins.NAME]`, or deny the others under `[policy.deny]`: "
                '"store.NAME" = "reason"'
            )
        else:
            problem, hint = "no store plugin is installed", "pip install sideband-store-sqlite"
            if not autoload:
                problem = "`plugins` contains no store, and `autoload=False` ignores installed plugins"
                hint = 'add `Plugin("store", "sqlite", sideband_store_sqlite.plugin)`, or omit `autoload=False`'
        raise ConfigurationError("plugins", problem, hint=hint)
    plugin = await plugins.load("store", names[0])
    spec: StoreSpec = plugin.contribution[0]
    make_home(folder)
    try:
        store = await enter(stack, spec.open(folder))
        if isinstance(store, Store):
            return store
        problem, cause = f"its `open` must yield a Store, got a {type(store).__name__}", None
    except (SidebandError, OSError):
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  a store may raise anything
        problem, cause = f"it cannot be opened: {describe(error)}", error
    raise PluginInvalid(plugin.record, problem) from cause
