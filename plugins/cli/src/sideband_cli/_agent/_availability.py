"""The requirements of an agent: its package and a model."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from sideband import SidebandError

from .._errors import AgentMissing, ModelUnconfigured, ModelUnknown

if TYPE_CHECKING:
    from sideband import Host

_LISTING_TIMEOUT = 5.0


def has_agent() -> bool:
    """Return whether the agent package is installed, without importing it."""
    return find_spec("sideband_agent") is not None


def require_agent(command: str) -> None:
    """Check that the agent package is installed.

    Args:
        command: the command that needs it.

    Raises:
        AgentMissing: if it is not installed.
    """
    if not has_agent():
        raise AgentMissing(command)


async def known_model(host: Host, name: str) -> str:
    """Return the name of a model that was typed: a bare name becomes `provider:model`, if one provider has it.

    A name in the configuration is not checked, so that models that a provider accepts but does not list can be used.
    Nor is a name whose provider has no list or is unavailable: the model call reports what is wrong.

    Raises:
        ModelUnknown: if its provider lists models, but not this one, or if no provider has the bare name.
        SidebandError: if the provider is unknown.
    """
    agent, llm = host.settings.settings.agent, host.settings.settings.plugins.get("llm", {})
    aliases, prices = llm.get("aliases", {}), llm.get("prices", {})
    if name in (agent.model, *agent.fallbacks, *aliases, *aliases.values(), *prices):
        return name
    provider, colon, _ = name.partition(":")
    listed = await host.op("llm.models", {"provider": provider} if colon else {})
    names: list[str] = [one["name"] for one in listed["models"]]
    if colon:
        # Ollama lists `llama3.2:latest`, and OpenRouter accepts variants such as `NAME:online` of a listed model.
        found = not names or {name, f"{name}:latest", name.rpartition(":")[0]} & {*names}
        if not found:
            raise ModelUnknown(name, names)
        return name
    matching = [one for one in names if one.partition(":")[2] == name]
    if len(matching) != 1:
        raise ModelUnknown(name, names, matching=matching, unavailable=[one["provider"] for one in listed["problems"]])
    return matching[0]


async def unconfigured(host: Host) -> ModelUnconfigured:
    """Return the error for a missing model, listing the models that can be found within 5 seconds."""
    from anyio import move_on_after

    names: list[str] = []
    with move_on_after(_LISTING_TIMEOUT):
        try:
            names = [model["name"] for model in (await host.op("llm.models", {}))["models"]]
        except SidebandError:
            names = []  # the error then explains how to configure a model
    return ModelUnconfigured(names)
