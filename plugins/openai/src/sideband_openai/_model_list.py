"""Parser for model lists, whose fields differ from server to server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Any

from sideband.providers import ModelInfo, Prices

from ._known_models import known

_MAX_MODELS = 10_000
_MAX_NAME_LENGTH = 256
_WINDOWS = ("context_length", "context_window", "max_model_len", "max_context_length")
# OpenAI lists models of every kind. These do not generate text.
_OTHERS = (
    *("audio", "babbage", "dall-e", "davinci", "embedding", "image"),
    *("moderation", "realtime", "sora", "transcribe", "tts", "whisper"),
)
_FREE = Prices(input=0, output=0)


def listed_models(data: Any, *, official: bool, free: bool) -> tuple[ModelInfo, ...]:
    """Return the models in a list, sorted by name.

    Args:
        data: the decoded response.
        official: whether the service is OpenAI's own, whose models are in the data file.
        free: whether the models run on this machine and cost nothing.
    """
    items = data.get("data") if isinstance(data, dict) else data
    found = {one.id: one for one in _infos(items if isinstance(items, list) else (), official=official, free=free)}
    return tuple(found[name] for name in sorted(found))


def _infos(items: Iterable[Any], *, official: bool, free: bool) -> Iterator[ModelInfo]:
    for count, item in enumerate(items):
        name = item.get("id") if isinstance(item, dict) else None
        if count >= _MAX_MODELS or not isinstance(name, str) or not _is_name(name):
            continue
        if not official:
            yield _info(name, item, free=free)
        elif (model := known(name)) is not None:
            yield model.info.model_copy(update={"id": name})
        elif not any(other in name for other in _OTHERS):
            yield ModelInfo(id=name)


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _MAX_NAME_LENGTH and name.isprintable() and " " not in name


def _info(name: str, item: dict[str, Any], *, free: bool) -> ModelInfo:
    """Return the properties that the server reports. Others are left unset, which differs from false."""
    fields: dict[str, Any] = {
        "context_window": next((size for field in _WINDOWS if (size := _size(item.get(field)))), None),
        "max_output": _size(_inner(item, "top_provider").get("max_completion_tokens")),
        "prices": _FREE if free else _prices(_inner(item, "pricing")),
    }
    if isinstance(kinds := _inner(item, "architecture").get("input_modalities"), list):
        fields |= {"images": "image" in kinds, "audio": "audio" in kinds}
        # OpenRouter also reads files for models that it does not list with them.
        fields |= {"files": True} if "file" in kinds else {}
    if isinstance(parameters := item.get("supported_parameters"), list):
        fields |= {"thinking": "reasoning" in parameters, "tools": "tools" in parameters}
    return ModelInfo(id=name, **{field: value for field, value in fields.items() if value is not None})


def _inner(item: dict[str, Any], name: str) -> dict[str, Any]:
    value = item.get(name)
    return value if isinstance(value, dict) else {}


def _size(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40 else None


def _prices(pricing: dict[str, Any]) -> Prices | None:
    """Return prices from OpenRouter's format: strings, in dollars per token."""
    read, written = _dollars(pricing.get("prompt")), _dollars(pricing.get("completion"))
    if read is None or written is None:
        return None
    return Prices(
        input=read,
        output=written,
        cache_read=_dollars(pricing.get("input_cache_read")),
        cache_write=_dollars(pricing.get("input_cache_write")),
    )


def _dollars(value: Any) -> float | None:
    """Return dollars per million tokens, or ``None`` if the value is not a valid price."""
    try:
        price = float(value) * 1_000_000
    except (TypeError, ValueError, OverflowError):
        return None
    return round(price, 6) if isfinite(price) and price >= 0 else None
