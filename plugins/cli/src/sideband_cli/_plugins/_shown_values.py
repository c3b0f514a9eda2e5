"""What is shown of the configuration: each value, except secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel
    from sideband.plugins import PluginHost
    from sideband.settings import LoadedSettings

HIDDEN = "[hidden]"
_USER = re.compile(r"(?<=://)[^/\s@]*@")


def values_of(config: BaseModel | None, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of one plugin by key.

    Only the plugin's model says which values are secrets: those of the type ``SecretStr``, and those with
    ``Field(repr=False)``. Without it, each value is hidden.

    Args:
        config: the validated configuration; ``None`` if the plugin cannot be used.
        table: its table in the configuration.
    """
    found = dict.fromkeys(table, HIDDEN) if config is None else dict(_fields(config))
    return {key: shown(key, value) for key, value in found.items()}


def shown(key: str, value: Any) -> Any:
    """Return a value without what its key, or a user name in a URL, tells to be secret."""
    from sideband.broker import Redaction

    return _without_users(Redaction().data({key: value})[key])


async def effective_settings(settings: LoadedSettings, plugins: PluginHost) -> list[dict[str, Any]]:
    """Return each setting that a host uses, with its source.

    Args:
        settings: the settings.
        plugins: the plugins, which say which of their values are secrets.
    """
    configs = [(name, config) async for name, config in _configs(settings.settings.plugins, plugins)]
    found = []
    for key, configured, source in settings.effective():
        value = configured
        section, _, rest = key.partition(".")
        plugin, _, name = rest.partition(".")
        if section == "plugins" and name:
            of_all = [values_of(config, {}).get(name, HIDDEN) for one, config in configs if one == plugin]
            # Plugins of several kinds may share a table.
            value = HIDDEN if not of_all or HIDDEN in of_all else of_all[0]
        found.append({"key": key, "value": _without_users(value), "source": source})
    return found


async def _configs(tables: Iterable[str], plugins: PluginHost) -> Any:
    from sideband.plugins import PluginError

    for record in plugins.records:
        if record.name in tables and record.kind != "skill":
            try:
                loaded = await plugins.load(record.kind, record.name, activate=False)
            except PluginError:
                continue
            if loaded.config is not None:
                yield record.name, loaded.config


def _fields(model: BaseModel) -> Iterator[tuple[str, Any]]:
    dumped: Mapping[str, Any] = model.model_dump(mode="json", by_alias=False)
    for name, field in type(model).model_fields.items():
        is_secret = not field.repr and getattr(model, name) not in (None, "", field.default)
        yield field.alias or name, HIDDEN if is_secret else _plain(getattr(model, name), dumped[name])


def _plain(value: Any, dumped: Any) -> Any:
    """Return a value as data. ``dumped`` is the same with secret fields of models in it."""
    from pydantic import BaseModel, SecretBytes, SecretStr

    if isinstance(value, SecretStr | SecretBytes):
        return HIDDEN
    if isinstance(value, BaseModel):
        return dict(_fields(value))
    if isinstance(value, Mapping) and isinstance(dumped, Mapping) and len(value) == len(dumped):
        return {key: _plain(one, inner) for (key, inner), one in zip(dumped.items(), value.values(), strict=True)}
    if isinstance(value, list | tuple) and isinstance(dumped, list) and len(value) == len(dumped):
        return [_plain(one, inner) for one, inner in zip(value, dumped, strict=True)]
    return dumped


def _without_users(value: Any) -> Any:
    if isinstance(value, str):
        return _USER.sub(f"{HIDDEN}@", value)
    if isinstance(value, Mapping):
        return {_without_users(key): _without_users(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_users(one) for one in value]
    return value
