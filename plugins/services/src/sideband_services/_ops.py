"""The ops: call a service, and list who provides it."""

from __future__ import annotations

from typing import Any

from sideband.contexts import SkillContext
from sideband.ops import Level, ToolCallFailed, op

from ._config import Config
from ._errors import ServiceCallFailed, ServiceError, ServiceUnknown
from ._models import ServiceProvider, ServicesCallParams, ServicesListParams
from ._providers import choose, providers_of, services_of
from ._scope import ServicesScope

_LONGEST_CALL = 86_400.0


def _scope_of(params: ServicesCallParams) -> ServicesScope:
    return ServicesScope(name=params.name, provider=params.provider)


def _listed_scope(params: ServicesListParams) -> tuple[ServicesScope, ...]:
    return () if params.name is None else (ServicesScope(name=params.name),)


@op(
    "services.call",
    requires="services",
    scope=_scope_of,
    level=Level.MONITORED,
    idempotent=True,
    timeout=_LONGEST_CALL,
    record=["name", "provider"],
    foreign_names=True,
    egress=False,
)
async def call(params: ServicesCallParams, ctx: SkillContext) -> Any:
    """Call a service and return the result of its provider unchanged.

    The provider is a skill. It has the rights that the user granted to it, never those of the caller.
    """
    tools = await ctx.tools()
    ranked = providers_of(params.name, tools)
    if not ranked:
        known = [name for name in services_of(tools) if ctx.allows(ServicesScope(name=name))]
        raise ServiceUnknown(params.name, known)
    config: Config = ctx.config
    chosen = choose(params.name, ranked, params.provider, config.providers)
    ctx.require(ServicesScope(name=params.name, provider=chosen.skill))
    try:
        return await ctx.call_tool(chosen.name, params.params, rights="skill")
    except ToolCallFailed as error:
        raise ServiceCallFailed(params.name, chosen.skill, error) from error


@op(
    "services.list",
    requires="services",
    scope=_listed_scope,
    level=Level.MONITORED,
    idempotent=True,
    record=["name"],
    egress=False,
)
async def list_services(params: ServicesListParams, ctx: SkillContext) -> list[ServiceProvider]:
    """List the providers of a service, or of all services that may be called: the first one of each is used."""
    tools = await ctx.tools()
    config: Config = ctx.config
    found: list[ServiceProvider] = []
    for name in services_of(tools) if params.name is None else [params.name]:
        ranked = [one for one in providers_of(name, tools) if ctx.allows(ServicesScope(name=name, provider=one.skill))]
        try:
            chosen = choose(name, ranked, None, config.providers) if ranked else None
        except ServiceError:  # a call raises it
            chosen = None
        for one in ranked:
            state = await ctx.tool_state(one.name)
            found.append(
                ServiceProvider(
                    service=name,
                    id=one.skill,
                    via=one.name,
                    state=state.state,
                    reason=state.reason,
                    chosen=one is chosen,
                )
            )
    return found


OPS = (call, list_services)
