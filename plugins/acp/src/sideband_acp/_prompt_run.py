"""A prompt in progress, and why its answer has ended."""

from __future__ import annotations

import anyio
from acp.schema import StopReason
from attrs import define, field
from sideband.messages import AssistantMessage
from sideband_agent import RunResult

from ._errors import AcpFailed

_BUDGET = ("budget.spent", "budget.unpriced")


@define(eq=False)
class PromptRun:
    """A prompt in progress.

    Attributes:
        done: set once the answer has ended.
        cancelled: whether the client has cancelled it.
        asking: the questions before the run.
        result: the result of the run; ``None`` without a run.
        failure: why it failed without a result.
    """

    done: anyio.Event = field(factory=anyio.Event)
    cancelled: bool = False
    asking: anyio.CancelScope = field(factory=anyio.CancelScope, repr=False)
    result: RunResult | None = None
    failure: Exception | None = None


def stop_reason(prompt: PromptRun) -> StopReason:
    """Return why an answer has ended.

    Raises:
        AcpFailed: if it has failed.
    """
    result = prompt.result
    if result is None:
        return "cancelled" if prompt.cancelled else "end_turn"
    if result.status == "aborted":
        return "cancelled"
    error = result.error or {}
    if result.status == "parked" and error.get("code") in _BUDGET:
        return "max_turn_requests"
    if result.status == "failed":
        raise AcpFailed(str(error.get("message", "the run failed")), hint=str(error.get("hint", "")))
    last = next((one for one in reversed(result.messages) if isinstance(one, AssistantMessage)), None)
    if last is not None and last.stop == "refusal":
        return "refusal"
    return "max_tokens" if last is not None and last.stop == "length" else "end_turn"
