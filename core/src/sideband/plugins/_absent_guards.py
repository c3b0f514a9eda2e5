"""What stands in for a guard that is installed and can't be used: what it can't check is denied."""

from __future__ import annotations

from attrs import frozen

from ..hooks import Deny, OpCall, ToolCall, hookimpl
from ._errors import described
from ._records import PluginRecord, State


def is_absent_guard(record: PluginRecord) -> bool:
    """Whether it is a guard that somebody installed, that no policy denies, and that can't do its work."""
    return record.kind == "guard" and record.state in {State.FAILED, State.INCOMPATIBLE}


@frozen
class AbsentGuard:
    """Denies every effect and every tool call, and says how to go on."""

    record: PluginRecord

    @hookimpl
    def op_call(self, event: OpCall | ToolCall) -> Deny:  # noqa: ARG002  it denies all
        """Deny the effect, or as ``tool_call`` the call."""
        return Deny(
            f"the {described(self.record)} can't be used: {self.record.reason}; "
            f'mend or uninstall it, or write "{self.record.label}" = "reason" under [policy.deny]'
        )

    tool_call = op_call
