"""Properties of models, from the data file and from the service."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from attrs import evolve, frozen
from sideband.messages import Usage
from sideband.providers import ModelInfo, Prices

_DATA = Path(__file__).with_name("models.toml")
_VARIANT = re.compile(r"(-\d{8}|-latest|@.*)\Z")
_PRICES = frozenset({"prices", "long_prices"})

ThinkingKind = Literal["none", "budget", "adaptive", "default", "always"]


@frozen
class Model:
    """The properties of a model that affect requests and costs. ``models.toml`` documents the fields."""

    id: str
    context_window: int | None = None
    max_output: int | None = None
    images: bool | None = None
    thinking: ThinkingKind = "budget"
    thinking_known: bool = False
    forced: bool = True
    sampling: bool = True
    prices: Prices | None = None
    long_prompt: int | None = None
    long_prices: Prices | None = None

    @property
    def info(self) -> ModelInfo:
        """The model as listed to users. Unknown properties are left unset."""
        fields: dict[str, Any] = {
            "context_window": self.context_window,
            "max_output": self.max_output,
            "images": self.images,
            "files": self.images,  # it sees the pages of PDFs
            "thinking": self.thinking != "none" if self.thinking_known else None,
            "prices": self.prices,
        }
        return ModelInfo(id=self.id, **{name: value for name, value in fields.items() if value is not None})

    def cost(self, usage: Usage) -> float | None:
        """Return the cost of a call if the price depends on the prompt length, else ``None``."""
        if self.long_prices is None or self.long_prompt is None or self.prices is None:
            return None
        prompt = usage.input + usage.cache_read + usage.cache_write
        prices = self.long_prices if prompt > self.long_prompt else self.prices
        return prices.cost(usage)


def known_models() -> tuple[Model, ...]:
    """Return all models in the data file."""
    return tuple(_data().values())


def known_model(name: str) -> Model:
    """Return a model by name, ignoring a date suffix or a vendor prefix. The properties of unknown models are guessed.

    Example:
        >>> known_model("claude-haiku-4-5-20251001").context_window
        200000
    """
    plain = _VARIANT.sub("", name.rpartition("/")[2])
    found = _data().get(name) or _data().get(plain)
    if found is not None:
        return evolve(found, id=name)
    if plain.startswith("claude-") and not plain.startswith(("claude-2", "claude-3", "claude-instant")):
        # Newer than the data file: each generation of these models has accepted fewer parameters than the last.
        return Model(name, thinking="default", forced=False, sampling=False)
    return Model(name)


def with_aliases(listed: Iterable[Model]) -> tuple[Model, ...]:
    """Return the listed models and their undated aliases, which the service accepts but does not list.

    Example:
        >>> [model.id for model in with_aliases([known_model("claude-haiku-4-5-20251001")])]
        ['claude-haiku-4-5-20251001', 'claude-haiku-4-5']
    """
    models = {model.id: model for model in listed}
    plain = {_VARIANT.sub("", name): model for name, model in models.items()}
    aliases = (evolve(plain[name], id=name) for name in _data() if name in plain and name not in models)
    return (*models.values(), *aliases)


def described(entry: Mapping[str, Any]) -> Model:
    """Return a model as the service describes it, completed from the data file."""
    model = known_model(str(entry["id"]))
    capabilities = entry.get("capabilities")
    return evolve(
        model,
        context_window=_count(entry.get("max_input_tokens")) or model.context_window,
        max_output=_count(entry.get("max_tokens")) or model.max_output,
        images=model.images if (images := _supported(capabilities, "image_input")) is None else images,
        **_thinking(model, capabilities),
    )


def _thinking(model: Model, capabilities: Any) -> dict[str, Any]:
    if _supported(capabilities, "thinking") is False:
        return {"thinking": "none", "thinking_known": True}
    types = _table(_table(capabilities, "thinking"), "types")
    adaptive = _supported(types, "adaptive")
    if adaptive is None:
        return {}
    if not adaptive:
        kind: ThinkingKind = "budget" if _supported(types, "enabled") else "none"
    elif _supported(types, "disabled") is False:
        kind = "always"
    else:
        kind = model.thinking if model.thinking in {"adaptive", "default"} else "default"
    return {"thinking": kind, "thinking_known": True}


def _supported(table: Any, name: str) -> bool | None:
    value = _table(table, name).get("supported")
    return value if isinstance(value, bool) else None


def _table(table: Any, name: str) -> dict[str, Any]:
    entry = table.get(name) if isinstance(table, dict) else None
    return entry if isinstance(entry, dict) else {}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


@cache
def _data() -> dict[str, Model]:
    with _DATA.open("rb") as file:
        tables = tomllib.load(file)
    return {name: _read(name, table) for name, table in tables.items()}


def _read(name: str, table: dict[str, Any]) -> Model:
    fields: dict[str, Any] = {
        key: Prices.model_validate(value) if key in _PRICES else value for key, value in table.items()
    }
    return Model(name, images=True, thinking_known=True, **fields)
