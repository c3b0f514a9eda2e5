"""The timeout of a call and the memory limit of its worker, within the limits of the policy."""

from __future__ import annotations

from ..errors import UsageError
from ..loading import SkillSpec, ToolSpec
from ..settings import Policy, format_bytes
from ..workers import AboveMaximum


def call_timeout(policy: Policy, skill: SkillSpec, tool: ToolSpec, requested: float | None) -> float:
    """Return the timeout of a call in seconds: that of the caller, else of the tool, the skill or the policy.

    Raises:
        AboveMaximum: if it exceeds the maximum of the policy.
        UsageError: if the caller's timeout is not positive.
    """
    if requested is not None and not requested > 0:
        raise UsageError(f"timeout must be positive, got {requested:g}", hint="pass a number of seconds")
    seconds = requested or tool.timeout or skill.timeout
    if seconds and seconds > policy.maximum_timeout:
        requester = f"the tool `{tool.full_name}`" if tool.timeout else f"the skill `{skill.name}`"
        wanted, most = f"{seconds:g} s", f"{policy.maximum_timeout:g} s"
        raise AboveMaximum("timeout", "the call" if requested else requester, wanted, most)
    return seconds or policy.timeout


def worker_memory(policy: Policy, skill: SkillSpec) -> int:
    """Return the limit of the worker's resident memory in bytes: that of the skill, else of the policy.

    Raises:
        AboveMaximum: if it exceeds the maximum of the policy.
    """
    if skill.memory is None:
        return policy.memory
    if skill.memory > policy.maximum_memory:
        requested, maximum = format_bytes(skill.memory), format_bytes(policy.maximum_memory)
        raise AboveMaximum("memory", f"the skill `{skill.name}`", requested, maximum)
    return skill.memory
