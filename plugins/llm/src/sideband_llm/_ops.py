"""The ops: call a model, list models, and for skills: get text or typed data from a model, and let it use tools."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from anyio import get_cancelled_exc_class
from sideband.contexts import HandlerContext, ModelContext
from sideband.messages import AssistantMessage, Fragment, JsonPieces, UserMessage
from sideband.ops import Level, op
from sideband.providers import EmbeddingProvider, EmbeddingRequest, Embeddings, ModelRequest, ProviderError

from ._abilities import ability, check_abilities
from ._agent_loop import AgentLoop
from ._conversation import Conversation, can_correct, data_of
from ._embeddings import check_embeddings, estimated_usage
from ._errors import SETUP, ModelUnable, ModelUnpriced, OutputInvalid
from ._foreign import ProviderErrors
from ._model_lookup import find_model
from ._model_names import ModelName
from ._models import GenerateParams, ListedModel, ModelList, ModelsParams, ProviderProblem
from ._output_schema import OutputSchema
from ._response_stream import read_response
from ._scope import LlmScope, check_skill, scope_of
from ._skill_models import (
    ChatParams,
    LlmAgentAnswer,
    LlmAgentParams,
    ModelAnswer,
    OneshotParams,
    ResolveToolsParams,
    ToolDefinitions,
)
from ._state import ModelCatalog
from ._survey import Surveyed, open_provider, survey, unknown_provider
from ._tool_lookup import definitions, find_tools
from ._undo import reconcile_generate

_CALL_SECONDS = 1_800.0
_EMBED_SECONDS = 120.0
_LONGEST = 3_660.0


@op(
    "llm.generate",
    requires="llm",
    scope=scope_of,
    level=Level.MONITORED,
    idempotent=True,
    timeout=_CALL_SECONDS,
    record=["model", "max_tokens", "temperature", "thinking", "tool_choice"],
    reports=["model", "usage", "stop"],
    reconcile=reconcile_generate,
    foreign_names=True,
    egress=True,
)
async def generate(params: GenerateParams, ctx: HandlerContext) -> AssistantMessage:
    """Call a model and return the complete message."""
    models: ModelCatalog = ctx.state
    name = await find_model(params.model, ctx)
    provider, provider_ctx = await open_provider(name.provider, ctx)
    request = params.request(name.model)
    if ctx.origin.skill is not None:
        check_skill(ctx.op, request)
    # Input from users, tools and skills is already redacted; a plugin or a project file may still contain a secret.
    ctx.check_egress(None, {"request to the model": _text_of(request)})
    info = await models.find(name, provider, provider_ctx)
    check_abilities(name, request, info)
    price = partial(models.priced, name=name, info=info)
    async with models.accounts.opened(params.model, ctx) as account:
        if account is not None and account.limits_money and models.prices_of(name, info) is None:
            raise ModelUnpriced(str(name))
        emit = ctx.emit if account is None else account.emit
        try:
            message = await read_response(provider, request, provider_ctx, emit)
        except ProviderError as error:
            # a failed call may have been paid for too
            error.usage = error.usage and price(error.usage)
            if account is not None and error.usage is not None:
                account.charge(error.usage)
            raise
        except get_cancelled_exc_class():
            if account is not None:
                account.charge(price(account.estimated(request)))
            raise
        usage = price(message.usage)
        if account is not None:
            account.charge(usage)
    return message.model_copy(update={"model": str(name), "usage": usage})


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


def _model_scope(params: ChatParams | EmbeddingRequest | OneshotParams) -> LlmScope:
    return LlmScope(model=params.model)


@op(
    "llm.embed",
    requires="llm",
    scope=_model_scope,
    level=Level.MONITORED,
    idempotent=True,
    timeout=_EMBED_SECONDS,
    record=["model"],
    reports=["model", "usage"],
    reconcile=reconcile_generate,
    foreign_names=True,
    egress=True,
)
async def embed(params: EmbeddingRequest, ctx: HandlerContext) -> Embeddings:
    """Turn texts into vectors, of which those of texts with similar meanings are similar."""
    models: ModelCatalog = ctx.state
    name = await find_model(params.model, ctx)
    provider, provider_ctx = await open_provider(name.provider, ctx)
    if not isinstance(provider, EmbeddingProvider):
        raise ModelUnable(str(name), "embeddings", "use a model of a provider with embeddings, such as `openai`")
    ctx.check_egress(None, {"request to the model": "\n".join(params.texts)})
    info = await models.find(name, provider, provider_ctx)
    price = partial(models.priced, name=name, info=info)
    async with models.accounts.opened(params.model, ctx) as account:
        if account is not None and account.limits_money and models.prices_of(name, info) is None:
            raise ModelUnpriced(str(name))
        try:
            with ProviderErrors(name.provider):
                found = await provider.embed(params.model_copy(update={"model": name.model}), provider_ctx)
            check_embeddings(found, len(params.texts), name.provider)
        except get_cancelled_exc_class():
            if account is not None:
                account.charge(price(estimated_usage(params)))
            raise
        usage = price(found.usage)
        if account is not None:
            account.charge(usage)
    return found.model_copy(update={"model": str(name), "usage": usage})


def _tool_scopes(params: ResolveToolsParams) -> Iterable[LlmScope]:
    return [LlmScope(tool=name) for name in params.tools]


def _agent_scopes(params: LlmAgentParams) -> Iterable[LlmScope]:
    return [LlmScope(model=params.model), *(LlmScope(model=params.model, tool=name) for name in params.tools)]


@op(
    "llm.chat",
    requires="llm",
    scope=_model_scope,
    level=Level.MONITORED,
    idempotent=True,
    timeout=_LONGEST,
    record=["model", "max_tokens", "temperature"],
    foreign_names=True,
    egress=False,
)
async def chat(params: ChatParams, ctx: HandlerContext) -> ModelAnswer:
    """Continue a conversation, and return the text of the answer."""
    talk = _conversation(params, ctx)
    talk.messages += params.messages
    answer = await talk.ask()
    return ModelAnswer(content=answer.text, model=answer.model, stop=answer.stop, usage=talk.usage)


@op(
    "llm.oneshot",
    requires="llm",
    scope=_model_scope,
    level=Level.MONITORED,
    idempotent=True,
    timeout=_LONGEST,
    record=["model", "max_tokens", "temperature", "repairs"],
    foreign_names=True,
    egress=False,
)
async def oneshot(params: OneshotParams, ctx: HandlerContext) -> ModelAnswer:
    """Ask a model one question, and return text, or data that fits a schema.

    An answer that does not fit is sent back to the model with what is wrong, at most `repairs` times. A schema is a
    subset of JSON Schema: `type`, `properties`, `required`, `additionalProperties`, `items`, `prefixItems`, `enum`,
    `const`, `anyOf`, `oneOf`, `allOf`, `$ref` to `$defs`, limits of numbers, lengths and counts, `pattern` and
    `uniqueItems`.
    """
    talk = _conversation(params, ctx)
    talk.schema = schema = None if params.output_schema is None else OutputSchema.of(params.output_schema)
    talk.messages.append(UserMessage(content=params.prompt))
    while True:
        answer = await talk.ask()
        data, problem = (None, None) if schema is None else data_of(answer, schema)
        if problem is None:
            return ModelAnswer(
                content=answer.text,
                data=data,
                model=answer.model,
                stop=answer.stop,
                usage=talk.usage,
                attempts=talk.calls,
            )
        if talk.calls > params.repairs or not can_correct(answer):
            raise OutputInvalid(talk.calls, problem)
        talk.correct(problem)


@op(
    "llm.resolve_tools",
    requires="llm",
    scope=_tool_scopes,
    level=Level.SAFE,
    idempotent=True,
    record=["tools"],
    foreign_names=True,
    egress=False,
)
async def resolve_tools(params: ResolveToolsParams, ctx: HandlerContext) -> ToolDefinitions:
    """Return the definitions of tools of skills, as models get them. The capability must allow each tool."""
    return definitions(await find_tools(params.tools, ctx))


@op(
    "llm.agent",
    requires="llm",
    scope=_agent_scopes,
    level=Level.MONITORED,
    idempotent=True,
    timeout=_LONGEST,
    record=["model", "tools", "max_iterations", "timeout", "repairs"],
    foreign_names=True,
    egress=False,
)
async def agent(params: LlmAgentParams, ctx: HandlerContext) -> LlmAgentAnswer:
    """Let a model solve a task with tools of skills, in a loop with limits, and return its answer.

    Each tool runs with the rights of its skill, narrowed to those of the caller, and is recorded as a child of this
    effect. An error of a tool is shown to the model. Tools and schema are checked before the first model call.
    """
    schema = None if params.output_schema is None else OutputSchema.of(params.output_schema)
    tools = await find_tools(params.tools, ctx)
    talk = _conversation(params, ctx)
    talk.schema, talk.tools = schema, definitions(tools)
    talk.messages.append(UserMessage(content=params.prompt))
    return await AgentLoop(params, ctx, talk, tools).run()


OPS = (agent, chat, embed, generate, list_models, oneshot, resolve_tools)


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


def _conversation(params: ChatParams | OneshotParams | LlmAgentParams, ctx: HandlerContext) -> Conversation:
    return Conversation(ctx, params.model, params.system, max_tokens=params.max_tokens, temperature=params.temperature)
