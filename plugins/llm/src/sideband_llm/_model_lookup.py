"""Lookup of the full name of a model."""

from __future__ import annotations

from sideband.contexts import ModelContext
from sideband.suggestions import closest

from ._errors import ModelUnclear
from ._model_names import ModelName
from ._scope import LlmScope
from ._state import ModelCatalog
from ._survey import survey


async def find_model(text: str, ctx: ModelContext) -> ModelName:
    """Return the full name of the model.

    Raises:
        ModelUnclear: if the name is unknown or ambiguous.
        OpDenied: if the name is bare and the grant does not include the full name.
    """
    models: ModelCatalog = ctx.state
    name = ModelName.parse(models.aliases.get(text, text))
    return name if name is not None else await _search(text, ctx)


async def _search(text: str, ctx: ModelContext) -> ModelName:
    """Return the only model with this bare name."""
    surveyed = await survey(await ctx.providers(), ctx)
    names = [ModelName(one.provider, info.id) for one in surveyed for info in one.models]
    found = [name for name in names if name.model == text]
    if len(found) != 1:
        close = closest(text, (name.model for name in names))
        suggested = next((str(name) for name in names if name.model == close), "")
        raise ModelUnclear(text, map(str, found), closest=suggested)
    scope = LlmScope(model=str(found[0]))
    if not ctx.allows(scope):  # which accepts a capability that also names tools or amounts
        ctx.require(scope)
    return found[0]
