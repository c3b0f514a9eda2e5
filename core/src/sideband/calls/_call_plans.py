"""What the calls of a tool have in common, determined once."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from typing import Any

from attrs import define, field, frozen

from ..loading import ToolSpec
from ..ops import Grant
from ..workers import LaunchRequest

_MAX_PLANS = 1_024


@frozen
class CallPlan:
    """The properties of all calls of a tool with the same launch, grant and principal.

    Attributes:
        name: ``skill.tool``.
        code: identifies the code of the skill: its snapshot and its packages.
        domain: the trust domain.
        module: the path of the module in the snapshot.
        capabilities: the capabilities of the grant as strings.
        environment: ``timezone`` and ``locale``.
    """

    tool: ToolSpec
    launch: LaunchRequest
    grant: Grant
    name: str
    code: str
    domain: str
    module: str
    capabilities: tuple[str, ...]
    environment: Mapping[str, Any]


@define
class CallPlans:
    """The plans of a host, by tool and principal. A plan applies only to the very launch and grant it is for.

    Each load of a skill has its own launch.
    """

    _known: dict[tuple[str, str], CallPlan] = field(factory=dict, init=False)

    def of(self, name: str, tool: ToolSpec, launch: LaunchRequest, grant: Grant, principal: str) -> CallPlan:
        """Return the plan for a call of the tool that was requested by ``name``."""
        plan = self._known.get((name, principal))
        if plan is None or plan.launch is not launch or plan.grant is not grant:
            if len(self._known) >= _MAX_PLANS:
                self._known.clear()
            plan = self._known[name, principal] = _plan(tool, launch, grant, principal)
        return plan


def code_of(launch: LaunchRequest) -> str:
    """Return what identifies the code of a skill: its snapshot and its packages."""
    return f"{launch.snapshot.name} {launch.packages.name if launch.packages else ''}"


def _plan(tool: ToolSpec, launch: LaunchRequest, grant: Grant, principal: str) -> CallPlan:
    code = code_of(launch)
    # A worker imports its SDK once, which a reload of a plugin may change.
    parts = [code, launch.sdk.name, str(launch.limits.memory), str(grant), principal]
    return CallPlan(
        tool,
        launch,
        grant,
        name=tool.full_name,
        code=code,
        domain=hashlib.sha256("\0".join(parts).encode()).hexdigest(),
        module=str(launch.snapshot / tool.module),
        capabilities=grant.texts(),
        environment={
            "timezone": os.environ.get("TZ") or time.tzname[0],
            "locale": os.environ.get("LANG", "C.UTF-8"),
        },
    )
