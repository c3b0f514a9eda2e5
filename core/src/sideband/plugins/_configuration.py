"""Validate a plugin's table ``[plugins.NAME]`` with its ``Config``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import AliasChoices, AliasPath, BaseModel, ValidationError

from ..suggestions import did_you_mean
from ..validation import problem_text
from ._errors import PluginInvalid, PluginMisconfigured
from ._records import PluginRecord

_SENSITIVE = re.compile(r"secret|token|passw|passphrase|credential|authorization|api_?key|private", re.IGNORECASE)
_USER = re.compile(r"://[^/\s@]*@")
_SHOWN = 80


def config_model(record: PluginRecord, value: Any) -> type[BaseModel] | None:
    """Return the plugin's ``Config``, or ``None`` if it does not define one.

    Raises:
        PluginInvalid: if ``Config`` is not a pydantic model.
    """
    model = getattr(value, "Config", None)
    if model is None or (isinstance(model, type) and issubclass(model, BaseModel)):
        return model
    raise PluginInvalid(record, "its `Config` is not a pydantic model: derive it from `pydantic.BaseModel`")


def validate_config(
    record: PluginRecord, model: type[BaseModel], table: Mapping[str, Any], sources: Mapping[str, str]
) -> BaseModel:
    """Validate the plugin's configuration and return it as an instance of its model.

    A relative path in a file is resolved against the folder of that file: the working directory may be any folder, and
    the path may lead to certificates or keys.

    Args:
        record: the plugin.
        model: its ``Config``.
        table: the configured values.
        sources: the sources of the values, by plugin (``http``) or by key (``http.timeout``).

    Raises:
        PluginMisconfigured: if a key or value is invalid; the message names each, and the source of the first.
    """
    problems = _unknown_keys(model, table)
    try:
        config = model.model_validate(dict(table))
    except ValidationError as error:
        problems += [_problem(model, details) for details in error.errors(include_url=False)]
    if not problems:
        return config.model_copy(update=dict(_absolute_paths(record.name, config, sources)))
    key, problem = problems[0]
    others = "".join(f"; `plugins.{record.name}.{other}`: {text}" for other, text in problems[1:])
    source = sources.get(f"{record.name}.{key.partition('.')[0]}") or sources.get(record.name, "")
    raise PluginMisconfigured(record, f"plugins.{record.name}.{key}", problem + others, source=source)


def _absolute_paths(plugin: str, config: BaseModel, sources: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Yield the configured fields. Paths from files are absolute; the name of a variable or an option has no parent."""
    for name, field in type(config).model_fields.items():
        if name in config.model_fields_set:
            source = sources.get(f"{plugin}.{field.alias or name}", "")
            yield name, _absolute(getattr(config, name), Path(source).parent)


def _absolute(value: Any, folder: Path) -> Any:
    if isinstance(value, Path):
        return value if str(value).startswith("~") else folder / value
    if isinstance(value, BaseModel):
        return value.model_copy(
            update={name: _absolute(getattr(value, name), folder) for name in value.model_fields_set}
        )
    if type(value) is dict:
        return {key: _absolute(item, folder) for key, item in value.items()}
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(_absolute(item, folder) for item in value)
    return value


def _unknown_keys(model: type[BaseModel], table: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return problems about unknown keys, which pydantic ignores by default; typos must be reported."""
    if "extra" in model.model_config:
        return []
    known = _keys(model)
    return [(str(key), f"unknown key{did_you_mean(str(key), known)}") for key in table if key not in known]


def _keys(model: type[BaseModel]) -> set[str]:
    """Return the keys that a table may have, including all aliases of each field."""
    by_name = model.model_config.get("populate_by_name") or model.model_config.get("validate_by_name")
    keys = set()
    for name, field in model.model_fields.items():
        alias = field.validation_alias
        choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
        keys |= {str(choice.path[0]) if isinstance(choice, AliasPath) else choice for choice in choices if choice}
        if alias is None or by_name:
            keys.add(name)
    return keys


def _problem(model: type[BaseModel], details: Any) -> tuple[str, str]:
    """Return the path of a key within the table, and the problem with its value."""
    key = ".".join(str(part) for part in details["loc"]) or "*"
    if details["type"] == "extra_forbidden":
        return key, f"unknown key{did_you_mean(key, _keys(model))}"
    if details["type"] == "missing":
        return key, "required key is missing"
    if _is_secret(model, key):
        return key, f"invalid value ({details['type']}), hidden because it may be a secret"
    if isinstance(details["input"], Mapping):
        return key, problem_text(details)
    shown = _USER.sub("://", repr(details["input"]))
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    return key, f"{problem_text(details)}, got {shown}"


def _is_secret(model: type[BaseModel], key: str) -> bool:
    first, *rest = key.split(".")
    field = next((one for name, one in model.model_fields.items() if first in (name, one.alias)), None)
    is_declared = field is not None and ("Secret" in str(field.annotation) or not field.repr)
    if is_declared or _SENSITIVE.search(key) or model.model_config.get("hide_input_in_errors"):
        return True
    # The path may lead through lists and mappings to a field of a model within this one.
    paths = [".".join(rest[start:]) for start in range(len(rest))]
    inner = _models(field.annotation) if field is not None else ()
    return any(_is_secret(one, path) for one in inner for path in paths)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for one in get_args(annotation):
        yield from _models(one)
