"""The entry point of the group `sideband.v1.op`: registers the family `shell`."""

from __future__ import annotations

from pathlib import Path

from sideband.ops import OpFamily

from ._config import Config
from ._errors import ERRORS
from ._ops import run
from ._scope import ShellScope

__all__ = ["Config", "sideband_ops"]


def sideband_ops() -> OpFamily:
    """Return the op family."""
    return OpFamily(
        name="shell",
        ops=(run,),
        scope=ShellScope,
        sdk=Path(__file__).with_name("_sdk.py"),
        doc="Runs programs in the isolation of skills, without a shell.",
        errors=ERRORS,
    )
