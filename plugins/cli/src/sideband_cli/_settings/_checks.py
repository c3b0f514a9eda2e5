"""Check changed settings before they are written: with the schema of the file, and with those of plugins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sideband import UsageError
from sideband.suggestions import did_you_mean

if TYPE_CHECKING:
    from sideband.settings import LoadedSettings
    from sideband_settings_file import SettingsFile


async def check_file(file: SettingsFile, loaded: LoadedSettings, plugins: Iterable[str] | None = None) -> None:
    """Check all settings of a changed file.

    Args:
        file: the file with its changes.
        loaded: the settings of this command line, whose policy says which plugins may be imported.
        plugins: the plugins whose tables have changed, which must be installed; ``None`` for those that are.

    Raises:
        ConfigurationError: if a key or value is invalid.
        PluginError: if that of a plugin is, or if the plugin cannot be used.
        UsageError: if a plugin is not installed.
    """
    from sideband.settings import check_settings

    values = file.values
    check_settings(values, str(file.path))
    tables: Mapping[str, Mapping[str, Any]] = values.get("plugins", {})
    changed = list(tables if plugins is None else plugins)
    if changed:
        await _check_plugins(tables, changed, str(file.path), loaded, installed=plugins is not None)


async def _check_plugins(
    tables: Mapping[str, Mapping[str, Any]], names: list[str], source: str, loaded: LoadedSettings, *, installed: bool
) -> None:
    from sideband.plugins import PluginHost, discover
    from sideband.state import default_home

    policy = loaded.plugin_policy()
    found = [one for one in discover(default_home(), policy) if one.kind not in ("skill", "command")]
    known = {record.name for record in found}
    for name in names:
        if name not in known and installed:
            raise UsageError(
                f"no plugin `{name}` is installed{did_you_mean(name, known)}",
                hint="run `sideband plugins list` to see all; `sideband config edit` accepts tables of others",
            )
    config = {**policy.config, **{name: tables.get(name, {}) for name in names}}
    sources = {key: where for key, where in policy.config_source.items() if key.partition(".")[0] not in names}
    sources |= {f"{name}.{key}": source for name in names for key in tables.get(name, {})}
    changed = policy._replace(strict=False, guards=frozenset(), config=config, config_source=sources)
    async with PluginHost(changed, home=default_home(), load_at_start=False) as plugins:
        for record in plugins.records:
            if record.name in names and record.kind not in ("skill", "command") and record.state.usable:
                await plugins.load(record.kind, record.name, activate=False)
