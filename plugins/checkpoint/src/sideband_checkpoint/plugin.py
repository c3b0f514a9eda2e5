"""Plugin `checkpoint`: registration."""

from __future__ import annotations

from sideband.ops import OpFamily

from ._config import Config
from ._errors import ERRORS
from ._ops import OPS
from ._scope import CheckpointScope

__all__ = ["Config", "sideband_ops"]


def sideband_ops() -> OpFamily:
    """Return the op family."""
    return OpFamily(
        name="checkpoint",
        ops=OPS,
        scope=CheckpointScope,
        doc="Keeps small data of a skill for a later call.",
        errors=ERRORS,
    )
