"""Plugin `services`: registration."""

from __future__ import annotations

from sideband.ops import OpFamily

from ._config import Config
from ._errors import ERRORS
from ._ops import OPS
from ._scope import ServicesScope

__all__ = ["Config", "sideband_ops"]


def sideband_ops() -> OpFamily:
    """Return the op family."""
    return OpFamily(
        name="services",
        ops=OPS,
        scope=ServicesScope,
        doc="Calls what skills provide, by the name of a service.",
        errors=ERRORS,
    )
