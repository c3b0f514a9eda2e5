"""What each mode does about changes of each level."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from sideband.contexts import ApprovalMode
from sideband.ops import Level


class Handling(Enum):
    """What the guard does about a tool call or an effect."""

    ALLOW = "allowed"
    ASK = "asked, also for the session or always"
    ASK_EACH_TIME = "asked each time"
    DENY = "denied until a plan is approved"


_READING = {Level.SAFE: Handling.ALLOW, Level.MONITORED: Handling.ALLOW}


def _changing(controlled: Handling, more: Handling) -> Mapping[Level, Handling]:
    return MappingProxyType({**_READING, Level.CONTROLLED: controlled, Level.RESTRICTED: more, Level.PRIVILEGED: more})


MATRIX: Mapping[ApprovalMode, Mapping[Level, Handling]] = MappingProxyType(
    {
        "manual": _changing(Handling.ASK_EACH_TIME, Handling.ASK_EACH_TIME),
        "assist": _changing(Handling.ASK, Handling.ASK),
        "semi": _changing(Handling.ALLOW, Handling.ASK),
        "full": _changing(Handling.ALLOW, Handling.ALLOW),
        "plan": _changing(Handling.DENY, Handling.DENY),
    }
)
"""By mode and level."""
