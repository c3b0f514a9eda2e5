"""The scope of an ``llm`` capability."""

from __future__ import annotations

import attrs
from sideband.ops import Scope

from ._models import GenerateParams


@attrs.frozen
class LlmScope(Scope, family="llm"):
    """The fields of an ``llm`` capability.

    Args:
        model: ``provider:model``, or an alias from the configuration, whatever model it refers to.
    """

    model: str | None = None


def scope_of(params: GenerateParams) -> LlmScope:
    """Return the scope that a model call needs: the model as requested."""
    return LlmScope(model=params.model)
