"""The op family `progress`: registration."""

from __future__ import annotations

from sideband.ops import OpFamily

from ._ops import report

__all__ = ["sideband_ops"]


def sideband_ops() -> OpFamily:
    """Return the op family."""
    return OpFamily(name="progress", ops=(report,), doc="Reports the progress of a call to its observers.")
