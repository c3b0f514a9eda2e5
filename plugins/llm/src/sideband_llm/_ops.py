"""The ops: call a model and list models."""

from __future__ import annotations

from sideband.contexts import ModelContext
from sideband.messages import AssistantMessage, Fragment, JsonPieces
from sideband.ops import Level, op
from sideband.providers import ModelRequest, ProviderError
from sideband.suggestions import closest

from ._abilities import ability, check_abilities
from ._errors import SETUP, ModelUnclear
from ._model_names import ModelName
from ._models import GenerateParams, ListedModel, ModelList, ModelsParams, ProviderProblem
from ._response_stream import read_response
from ._scope import LlmScope, check_skill, scope_of
from ._state import ModelCatalog
from ._survey import Surveyed, open_provider, survey, unknown_provider
from ._undo import reconcile_generate

_CALL_SECONDS = 1_800.0


@op(
    "llm.generate",
    requires="llm",
    scope=scope_of,
    level=Level.MONITORED,
    idempotent=True,
    timeout=_CALL_SECONDS,
    record=["model", "max_tokens", "temperature", "thinking", "tool_choice"],
    reconcile=reconcile_generate,
    foreign_names=True,
    egress=True,
)
async def generate(params: GenerateParams, ctx: ModelContext) -> AssistantMessage:
    """Call a model and return the complete message."""
    models: ModelCatalog = ctx.state
    name = await _name(params.model, ctx)
    provider, provider_ctx = await open_provider(name.provider, ctx)
    request = params.request(name.model)
    if ctx.origin.skill is not None:
        check_skill(ctx.op, request)
    # Input from users, tools and skills is already redacted; a plugin or a project file may still contain a secret.
    ctx.check_egress(None, {"request to the model": _text_of(request)})
    info = await models.find(name, provider, provider_ctx)
    check_abilities(name, request, info)
    try:
        message = await read_response(provider, request, provider_ctx, ctx.emit)
    except ProviderError as error:
        # a failed call may have been paid for too
        error.usage = error.usage and models.priced(error.usage, name, info)
        raise
    return message.model_copy(update={"model": str(name), "usage": models.priced(message.usage, name, info)})


def _text_of(request: ModelRequest) -> JsonPieces:
    """Return a request as JSON. Messages and tools that an agent sends again are checked once."""
    rest = request.model_dump_json(exclude={"messages", "tools"}).encode()
    head, middle, tail = Fragment(rest[:-1] + b',"tools":['), Fragment(b'],"messages":['), Fragment(b"]}")
    return JsonPieces((head, request.tools, middle, request.messages, tail))


@op("llm.models", requires="llm", level=Level.MONITORED, idempotent=True, record=["provider"], egress=True)
async def list_models(params: ModelsParams, ctx: ModelContext) -> ModelList:
    """List the available models, and the problems of providers that are unavailable."""
    catalog: ModelCatalog = ctx.state
    known = await ctx.providers()
    if params.provider is not None and params.provider not in known:
        raise await unknown_provider(params.provider, ctx)
    names = known if params.provider is None else (params.provider,)
    surveyed = await survey(names, ctx)
    models = [_listed(one, catalog) for one in surveyed]
    return ModelList(
        models=tuple(sorted((model for some in models for model in some), key=lambda model: model.name)),
        problems=tuple(
            ProviderProblem(provider=one.provider, code=one.error.code, message=one.error.message, hint=one.error.hint)
            for one in surveyed
            if one.error is not None
        ),
        aliases=dict(catalog.aliases),
        setup=() if any(models) else SETUP,
    )


OPS = (generate, list_models)


async def _name(text: str, ctx: ModelContext) -> ModelName:
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
    ctx.require(LlmScope(model=str(found[0])))
    return found[0]


def _listed(surveyed: Surveyed, catalog: ModelCatalog) -> list[ListedModel]:
    names = ((ModelName(surveyed.provider, info.id), info) for info in surveyed.models)
    return [
        ListedModel(
            name=str(name),
            provider=name.provider,
            context_window=info.context_window,
            max_output=info.max_output,
            images=ability(info, "images"),
            files=ability(info, "files"),
            audio=ability(info, "audio"),
            thinking=ability(info, "thinking"),
            tools=ability(info, "tools"),
            prices=catalog.prices_of(name, info),
        )
        for name, info in names
    ]
