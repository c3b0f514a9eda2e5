"""How long a call may take and how much memory its worker may use: what was asked for, within the policy."""

from __future__ import annotations

from ..errors import UsageError
from ..loading import SkillSpec, ToolSpec
from ..settings import Policy, format_bytes
from ..workers import AboveMaximum


def call_timeout(policy: Policy, skill: SkillSpec, tool: ToolSpec, asked: float | None) -> float:
    """Seconds for a call: the caller's, else the tool's, the skill's or the policy's.

    Raises:
        AboveMaximum: more than the policy allows.
        UsageError: the caller's is no time.
    """
    if asked is not None and not asked > 0:
        raise UsageError(f"a timeout of {asked:g} s is no time", hint="give seconds, more than 0")
    wishes = (
        ("the call", asked),
        (f"the tool `{tool.full_name}`", tool.timeout),
        (f"the skill `{skill.name}`", skill.timeout),
    )
    for who, seconds in wishes:
        if seconds:
            if seconds > policy.maximum_timeout:
                raise AboveMaximum("timeout", who, f"{seconds:g} s", f"{policy.maximum_timeout:g} s")
            return seconds
    return policy.timeout


def worker_memory(policy: Policy, skill: SkillSpec) -> int:
    """Resident bytes for the skill's worker: the skill's, else the policy's.

    Raises:
        AboveMaximum: more than the policy allows.
    """
    if skill.memory is None:
        return policy.memory
    if skill.memory > policy.maximum_memory:
        asked, most = format_bytes(skill.memory), format_bytes(policy.maximum_memory)
        raise AboveMaximum("memory", f"the skill `{skill.name}`", asked, most)
    return skill.memory
