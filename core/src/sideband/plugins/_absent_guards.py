"""The substitute for a guard that is installed but unusable: it denies everything."""

from __future__ import annotations

from attrs import frozen

from ..hooks import Deny, OpCall, ToolCall, hookimpl
from ._errors import described
from ._records import PluginRecord


def is_absent_guard(record: PluginRecord) -> bool:
    """Return whether the plugin is a guard that is installed and not denied by the policy, but unusable."""
    return record.kind == "guard" and record.state.broken


@frozen
class AbsentGuard:
    """A guard that denies every effect and every tool call."""

    record: PluginRecord

    @hookimpl
    def op_call(self, event: OpCall | ToolCall) -> Deny:  # noqa: ARG002  denies everything
        """Deny the effect or, as ``tool_call``, the tool call."""
        return Deny(
            f"the {described(self.record)} is unusable: {self.record.reason}; "
            f'repair or uninstall it, or add "{self.record.label}" = "reason" to [policy.deny]'
        )

    tool_call = op_call
