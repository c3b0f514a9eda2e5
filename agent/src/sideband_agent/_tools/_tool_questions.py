"""Requests for approval of tool calls, and of running an interrupted call again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen
from sideband.approvals import ApprovalNeeded, Approvals, Approver, StoredApproval
from sideband.broker import ASKED_BEFORE, risk_of
from sideband.hooks import Decision, Verdict
from sideband.host import ToolRegistry
from sideband.ops import Capability
from sideband.tools import Tool

from ._tool_context import ToolCallContext


@frozen
class ToolQuestions:
    """Asks for approvals of an agent's tool calls.

    Args:
        approvals: asks each question once, and stores it.
        approver: answers it; ``None`` without an approver.
        registry: knows the versions of tools.
    """

    approvals: Approvals = field(repr=False)
    approver: Approver | None
    registry: ToolRegistry = field(repr=False)

    async def ask(
        self, tool: Tool, arguments: Mapping[str, Any], ctx: ToolCallContext, decision: Decision
    ) -> StoredApproval | None:
        """Ask for the approval of a call that guards require, or that the run waited for when it parked.

        Returns:
            The answer; ``None`` if the call needs no approval.

        Raises:
            ApprovalNeeded: if there is no approver.
        """
        asks = decision.verdict is Verdict.ASK
        if not asks and not self.approvals.is_continued(ctx.origin.run):
            return None
        request = self.approvals.request(
            "tool",
            tool.name,
            decision.question or ASKED_BEFORE,
            arguments,
            origin=ctx.origin,
            code=await self.registry.code(tool, ctx.plugin),
            plugins=[ctx.plugin],
            grants=[str(Capability.exactly("tool", {"name": tool.name}))] if decision.lasting else (),
            level=tool.level,
            risk=risk_of(decision),
            preview=decision.preview or None,
        )
        if not asks and not self.approvals.is_waited_for(request):
            return None
        answer = await self.approvals.decide(request, self.approver)
        if answer is None:
            raise ApprovalNeeded(request, decision.plugin)
        return answer

    async def ask_again(
        self, tool: Tool, arguments: Mapping[str, Any], ctx: ToolCallContext, question: str, attempt: str
    ) -> StoredApproval:
        """Ask whether an interrupted call may run again.

        Args:
            tool, arguments, ctx: the call.
            question: the question.
            attempt: the key of the attempt, to which the answer is bound.

        Raises:
            ApprovalNeeded: if there is no approver.
        """
        request = self.approvals.request(
            "replay",
            tool.name,
            question,
            arguments,
            origin=ctx.origin,
            exact=[arguments, attempt],
            code=await self.registry.code(tool, ctx.plugin),
            plugins=[ctx.plugin],
            level=tool.level,
        )
        answer = await self.approvals.decide(request, self.approver)
        if answer is None:
            raise ApprovalNeeded(request)
        return answer
