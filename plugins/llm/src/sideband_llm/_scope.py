"""What capabilities of this family can limit."""

from __future__ import annotations

import attrs
from sideband.ops import Scope

from ._models import GenerateParams


@attrs.frozen
class LlmScope(Scope, family="llm"):
    """The field of an ``llm`` capability.

    Args:
        model: ``provider:model``, or an alias of the configuration, which then stands for whatever it names.
    """

    model: str | None = None


def scope_of(params: GenerateParams) -> LlmScope:
    """What a model call needs to be granted: the model, as it was asked for."""
    return LlmScope(model=params.model)
