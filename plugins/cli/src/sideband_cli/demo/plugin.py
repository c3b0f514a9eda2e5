"""The op family `demo`, which starts the service that the demo skill fetches from."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from sideband.ops import OpFamily
from sideband.plugins import PluginContext

from ._ops import service
from ._state import DemoService

__all__ = ["lifespan", "sideband_ops"]


def sideband_ops() -> OpFamily:
    """Register the family."""
    return OpFamily(name="demo", ops=(service,), doc="Runs the service of the demo.")


def lifespan(ctx: PluginContext) -> AbstractAsyncContextManager[DemoService]:
    """Keep the service for as long as the host runs."""
    return DemoService.open(ctx)
