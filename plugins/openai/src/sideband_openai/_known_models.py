"""Properties of OpenAI's own models, from ``_models.json``, which states its date."""

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
        info: the public properties.
        least_thinking: the lowest reasoning effort; in some models, reasoning cannot be disabled.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    info: ModelInfo
    least_thinking: str = "none"


def known(model: str) -> KnownModel | None:
    """Return the model of that name, ignoring a date suffix, or ``None`` if it is unknown."""
    models = _models()
    return models.get(model) or models.get(_DATED.sub("", model))


@cache
def _models() -> dict[str, KnownModel]:
    data = json.loads(_FILE.read_text(encoding="utf-8"))["models"]
    return {
        name: KnownModel(
            # Models that see pages accept PDFs, and none of those in the file hears.
            info=ModelInfo(
                id=name,
                **{"files": one["images"], "audio": False}
                | {key: value for key, value in one.items() if key != "least_thinking"},
            ),
            least_thinking=one.get("least_thinking", "none"),
        )
        for name, one in data.items()
    }
