"""The page on settings: all keys of ``sideband.toml``, of the kernel and of each plugin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from sideband.plugins._kinds import KINDS, When
from sideband.settings import Policy, Settings

from .docstrings import attributes, first_paragraph
from .packages import plugin_points
from .tables import paragraph, table, toml

__all__ = ["plugin_configs", "settings_page"]

_OPENING = re.compile(r"The table `\[[^`]+\]`[.:] ?")


def settings_page() -> list[str]:
    """Return the lines of the page."""
    lines = [
        "# Settings",
        "",
        *paragraph(
            "The user's settings are in `sideband.toml` in `SIDEBAND_HOME`. A `sideband.toml` in a project is read "
            "once it is trusted (`--trust`). An environment variable such as `SIDEBAND_POLICY__TIMEOUT=5` overrides "
            "both files, and `--set policy.timeout=5` overrides all of them. `sideband doctor` shows the effective "
            "value and origin of each setting. A setting whose default is *absent* has no value unless you set it."
        ),
        "",
        *table(
            ["section", "contents"],
            [[f"`[{name}]`", _section(name, field)] for name, field in Settings.model_fields.items()],
        ),
    ]
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            lines += _tables(name, field.annotation, "##")
    for name, config in sorted(plugin_configs().items()):
        lines += _tables(f"plugins.{name}", config, "##")
    return lines


def _section(name: str, field: FieldInfo) -> str:
    if name == "plugins":
        return "one table per plugin, see below"
    return field.description or f"see [below](#{name})"


def plugin_configs() -> dict[str, type[BaseModel]]:
    """Return the configuration model of each installed plugin, by the name of its table."""
    found = {}
    for group in (kind.group for kind in KINDS.values() if kind.when is not When.NEVER):
        for point in plugin_points(group):
            config = getattr(import_module(point.module), "Config", None)
            if config is not None:
                found[point.name] = config
    return found


def _tables(name: str, model: type[BaseModel], heading: str) -> Iterator[str]:
    """Yield the table of a model and of the models nested in it."""
    meanings = attributes(model)
    inner: list[tuple[str, type[BaseModel]]] = []
    rows = []
    for key, field in model.model_fields.items():
        below = _model_in(field.annotation)
        if below is None:
            value = _default(model, key, field)
        elif get_origin(field.annotation) is None:
            inner.append((f"{name}.{key}", below))
            continue
        else:
            inner.append((f"{name}.{key}.NAME", below))
            value = "`{}`"
        rows.append([f"`{key}`", value, field.description or meanings.get(key, "")])
    yield from ["", f"{heading} {name}", ""]
    if about := _OPENING.sub("", first_paragraph(model.__doc__)):
        yield from [about[0].upper() + about[1:], ""]
    yield from table(["key", "default", "meaning"], rows)
    for key, below in inner:
        yield from _tables(key, below, "###")


def _default(model: type[BaseModel], key: str, field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if model is Policy:  # the dumped form of a memory size is the one used in sideband.toml
        return toml(Policy().model_dump()[key])
    return toml(field.get_default(call_default_factory=True))


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model of a field, or of the values of its table."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, UnionType):
        return None
    return next((found for one in get_args(annotation) if (found := _model_in(one)) is not None), None)
