"""The op family `demo`, which starts the service for the demo skill."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from sideband.ops import OpFamily
from sideband.plugins import PluginContext

from ._ops import service
from ._state import DemoService

__all__ = ["lifespan", "sideband_ops"]


def sideband_ops() -> OpFamily:
    """Register the family."""
    return OpFamily(name="demo", ops=(service,), doc="Runs the demo service.")


def lifespan(ctx: PluginContext) -> AbstractAsyncContextManager[DemoService]:
    """Return the lifespan of the service, which ends with the host."""
    return DemoService.open(ctx)
