"""What has to be there before an agent can work: its package, and a model."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from sideband import SidebandError

from .._errors import AgentMissing, ModelUnconfigured

if TYPE_CHECKING:
    from sideband import Host

_PATIENCE = 5.0


def has_agent() -> bool:
    """Return whether the package of the agent is installed, without importing it."""
    return find_spec("sideband_agent") is not None


def require_agent(command: str) -> None:
    """Check that the package of the agent is installed.

    Args:
        command: the command that needs it.

    Raises:
        AgentMissing: it is not installed.
    """
    if not has_agent():
        raise AgentMissing(command)


async def unconfigured(host: Host) -> ModelUnconfigured:
    """The error, with the models that answer within a few seconds."""
    from anyio import move_on_after

    names: list[str] = []
    with move_on_after(_PATIENCE):
        try:
            names = [model["name"] for model in (await host.op("llm.models", {}))["models"]]
        except SidebandError:
            names = []  # the ways to a model are all that helps then
    return ModelUnconfigured(names)
