"""The requirements of an agent: its package and a model."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from sideband import SidebandError

from .._errors import AgentMissing, ModelUnconfigured

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
