"""What is known of OpenAI's own models: see the data beside it, which says how old it is."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from sideband.providers import ModelInfo

_FILE = Path(__file__).with_name("_models.json")
_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}$")


class KnownModel(BaseModel):
    """A model.

    Attributes:
        info: what everybody may know.
        least_thinking: what it is asked for if it shall not think: some can't be kept from it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    info: ModelInfo
    least_thinking: str = "none"


def known(model: str) -> KnownModel | None:
    """The model of that name, or the one of which it is a dated version; ``None`` if nothing is known of it."""
    models = _models()
    return models.get(model) or models.get(_DATED.sub("", model))


@cache
def _models() -> dict[str, KnownModel]:
    data = json.loads(_FILE.read_text(encoding="utf-8"))["models"]
    return {
        name: KnownModel(
            info=ModelInfo(id=name, **{key: value for key, value in one.items() if key != "least_thinking"}),
            least_thinking=one.get("least_thinking", "none"),
        )
        for name, one in data.items()
    }
