"""The values of settings, with the source of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sideband import UsageError
from sideband.suggestions import did_you_mean

from .._plugins._shown_values import effective_settings, values_of

if TYPE_CHECKING:
    from sideband.plugins import PluginHost
    from sideband.settings import LoadedSettings

_SECTION = "plugins"


async def values_at(key: str, settings: LoadedSettings) -> list[dict[str, Any]]:
    """Return the setting with this key, or all settings below it, each with its key, value and source.

    Secrets of plugins are hidden.

    Args:
        key: the path of keys, joined by points; empty for all settings.
        settings: the settings.

    Raises:
        UsageError: if no setting has the key.
    """
    from sideband.plugins import PluginHost
    from sideband.settings import Settings
    from sideband.state import default_home

    policy = settings.plugin_policy()._replace(strict=False, guards=frozenset())
    async with PluginHost(policy, home=default_home(), load_at_start=False) as plugins:
        rows = await effective_settings(settings, plugins)
        section, _, rest = key.partition(".")
        if section == _SECTION and rest:
            name = rest.partition(".")[0]
            given = {row["key"] for row in rows}
            rows += [row for row in await _defaults(name, settings, plugins) if row["key"] not in given]
    found = [row for row in rows if _is_at(row["key"], key)] or [inner for row in rows for inner in _inside(row, key)]
    if not found and key in Settings.model_fields:
        return [{"key": key, "value": {}, "source": "default"}]
    if not found:
        known = [row["key"] for row in rows]
        raise UsageError(
            f"no setting `{key}`{did_you_mean(key, known)}", hint="run `sideband config get` to see all settings"
        )
    return found


async def _defaults(name: str, settings: LoadedSettings, plugins: PluginHost) -> list[dict[str, Any]]:
    """Return the settings of a plugin, also those that are not set."""
    from sideband.plugins import PluginError

    found: dict[str, dict[str, Any]] = {}
    for record in plugins.records:
        if record.name == name and record.kind not in ("skill", "command"):
            try:
                config = (await plugins.load(record.kind, name, activate=False)).config
            except PluginError:
                continue
            for key, value in values_of(config, {}).items():
                source = settings.sources.get((_SECTION, name, key), "default")
                found[key] = {"key": f"{_SECTION}.{name}.{key}", "value": value, "source": source}
    return [found[key] for key in sorted(found)]


def _is_at(key: str, wanted: str) -> bool:
    return not wanted or key == wanted or key.startswith(f"{wanted}.")


def _inside(row: Mapping[str, Any], wanted: str) -> list[dict[str, Any]]:
    """Return a value within the value of a setting, such as one field of a table."""
    key: str = row["key"]
    if not wanted.startswith(f"{key}."):
        return []
    value = row["value"]
    for part in wanted.removeprefix(f"{key}.").split("."):
        if not isinstance(value, Mapping) or part not in value:
            return []
        value = value[part]
    return [{"key": wanted, "value": value, "source": row["source"]}]
