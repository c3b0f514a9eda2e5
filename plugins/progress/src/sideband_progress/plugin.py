"""The op family `progress`: registration."""

from __future__ import annotations

from sideband.ops import OpFamily

from ._ops import report

__all__ = ["sideband_ops"]


def sideband_ops() -> OpFamily:
    """The one op of this family."""
    return OpFamily(name="progress", ops=(report,), doc="Tells whoever watches a call how far it is.")
