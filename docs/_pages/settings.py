"""All keys of ``sideband.toml``: those of the core, and those of each plugin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from sideband.plugins._kinds import KINDS, When
from sideband.settings import Policy, Settings

from .docstrings import attributes, first_paragraph
from .tables import table, toml

__all__ = ["settings_page"]

_OPENING = re.compile(r"The table `\[[^`]+\]`[.:] ?")


def settings_page() -> list[str]:
    """The lines of the page."""
    lines = [
        "# Settings",
        "",
        "`sideband.toml` in `SIDEBAND_HOME` is the user's; one in a project counts once it is trusted (`--trust`).",
        "A variable `SIDEBAND_POLICY__TIMEOUT=5` overrides both, and `--set policy.timeout=5` all. `sideband doctor`",
        "shows what holds and where it comes from. What is absent has no value unless you give it one.",
        "",
        *table(
            ["section", "what it holds"],
            [[f"`[{name}]`", _section(name, field)] for name, field in Settings.model_fields.items()],
        ),
    ]
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            lines += _tables(name, field.annotation, "##")
    for name, config in sorted(_configs().items()):
        lines += _tables(f"plugins.{name}", config, "##")
    return lines


def _section(name: str, field: FieldInfo) -> str:
    if name == "plugins":
        return "one table for each plugin, below"
    return field.description or f"see [below](#{name})"


def _configs() -> dict[str, type[BaseModel]]:
    """The configuration of each installed plugin, by the name of its table."""
    found = {}
    for group in (kind.group for kind in KINDS.values() if kind.when is not When.NEVER):
        for point in entry_points(group=group):
            config = getattr(import_module(point.module), "Config", None)
            if config is not None:
                found[point.name] = config
    return found


def _tables(name: str, model: type[BaseModel], heading: str) -> Iterator[str]:
    """The table of a model, and those of the models that it holds."""
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
    if model is Policy:  # its memory is written otherwise than it is kept
        return toml(Policy().model_dump()[key])
    return toml(field.get_default(call_default_factory=True))


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a field, or each value of its table, is."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, UnionType):
        return None
    return next((found for one in get_args(annotation) if (found := _model_in(one)) is not None), None)
