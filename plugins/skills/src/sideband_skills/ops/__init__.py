"""The op family ``skills``: what plugins need to run the scripts of a skill, to write skills, and to pre-approve tools.

It is the entry point ``skills`` of the group ``sideband.v1.op``. Skills cannot dispatch these ops.
"""

from __future__ import annotations

from sideband.ops import OpFamily

from .._config import Config
from ._errors import ERRORS
from ._ops import allow, check, install, prepare, run
from ._scope import SkillsScope

__all__ = ["Config", "sideband_ops"]


def sideband_ops() -> OpFamily:
    """Return the op family."""
    return OpFamily(
        name="skills",
        ops=(prepare, run, install, allow, check),
        scope=SkillsScope,
        doc="Scripts, packages and files of skills.",
        errors=ERRORS,
    )
