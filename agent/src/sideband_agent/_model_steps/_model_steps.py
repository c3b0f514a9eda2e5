"""One model step. If the call fails, plugins choose to retry, compact, park the run or use another model."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import anyio
from attrs import define, evolve, field
from sideband.approvals import ApprovalNeeded
from sideband.errors import SidebandError
from sideband.hooks import Compact, GiveUp, HookRegistry, ModelError, ModelSelect, Park, Retry, RetryEnd, RetryStart
from sideband.messages import AssistantMessage
from sideband.ops import OpDenied, OpError

from .._announcer import Announcer
from .._compaction import Compactor
from .._errors import ApprovalAwaited, ModelFailed, RunParked
from .._run import Run
from .._spending import Spending
from ._model_calls import ModelCalls
from ._tool_selector import ToolSelector
from ._updates import MessageUpdates

_MAX_CALLS = 100
"""The maximum number of calls of one model in one step, whatever plugins decide."""


@define(eq=False)
class ModelSteps:
    """The model steps of an agent's runs.

    Args:
        calls: makes one call.
        selector: selects the tools that it sends.
        hooks: the agent's hooks, which decide about failed calls.
        announcer: emits retries.
        fallbacks: the models to try, in order, if the run's own model fails.
        compactor: compacts the conversation.
        spending: the usage, including that of failed calls.
    """

    calls: ModelCalls = field(repr=False)
    selector: ToolSelector = field(repr=False)
    hooks: HookRegistry = field(repr=False)
    announcer: Announcer = field(repr=False)
    fallbacks: Sequence[str]
    compactor: Compactor = field(repr=False)
    spending: Spending = field(repr=False)

    @property
    def updates(self) -> MessageUpdates:
        """The updates of the last message."""
        return self.calls.updates

    async def step(self, run: Run, step: str) -> AssistantMessage:
        """Return the model's next message. After a fallback, the run keeps the other model.

        Raises:
            ModelFailed: if no model answers.
            RunParked: if no model answers now but one will later, or if failed calls have used up the budget.
        """
        attempts = 0
        while True:
            try:
                return await self._ask(run, step, before=attempts)
            except _Left as left:
                attempts += left.attempts
                following = self._following(run.model)
                if following is None:
                    raise left.reason from left.cause
                self._check_budget()
                await self.announcer.emit(ModelSelect, following, previous=run.model, source="fallback")
                run.model = following

    def _following(self, model: str) -> str | None:
        """Return the model to try after this one, or ``None``."""
        chain = [name for name in self.fallbacks if name != model]
        if model in self.fallbacks:
            chain = list(self.fallbacks[self.fallbacks.index(model) + 1 :])
        return chain[0] if chain else None

    async def _ask(self, run: Run, step: str, *, before: int) -> AssistantMessage:
        began = perf_counter()
        attempt, compacted = 0, False
        while True:
            await self.selector.select(run)
            try:
                answer = await self.calls.ask(run, step, before + attempt + 1)
            except ApprovalNeeded as needed:
                raise ApprovalAwaited([needed]) from needed
            except OpError as raised:
                error = raised
                attempt += 1
                run.usage += await self.spending.charge_failure(error)
                event = ModelError(
                    run.id, run.model, error.as_dict(), attempt, perf_counter() - began, compacted=compacted
                )
                following = await self._after(run, event, error)
            else:
                if attempt:
                    await self.announcer.emit(RetryEnd, attempt, success=True)
                return answer
            match following:
                case Retry() if attempt < _MAX_CALLS:
                    self._check_budget()
                    await self.announcer.emit(RetryStart, attempt, following.delay, _described(event, following.kind))
                    await anyio.sleep(following.delay)
                    continue
                case Compact():
                    self._check_budget()
                    compacted = True
                    await self.announcer.emit(RetryStart, attempt, 0.0, _described(event, following.kind))
                    continue
            if attempt > 1:
                await self.announcer.emit(RetryEnd, attempt - 1, success=False)
            raise _Left(attempt, _reason(error, following), error)

    def _check_budget(self) -> None:
        """Check that another call may be made. Failed calls may have been paid for too."""
        self.spending.allowance.check("money", "tokens")

    async def _after(self, run: Run, event: ModelError, error: OpError) -> Retry | Compact | Park | GiveUp | None:
        """Return the reaction to a failure, after a requested compaction. If that fails, plugins decide again."""
        following = await self._what_follows(event, error)
        if isinstance(following, Compact) and not event.compacted:
            if await self.compactor.compact_within_run(run):
                return following
            following = await self._what_follows(evolve(event, compacted=True), error)
        return None if isinstance(following, Compact) else following

    async def _what_follows(self, event: ModelError, error: OpError) -> Retry | Compact | Park | GiveUp | None:
        # a denial by a guard is not a failure of the model; a retry would be denied again
        if isinstance(error, OpDenied):
            return None
        return await self.hooks.first(event)


class _Left(Exception):
    """A model was given up after some attempts."""

    def __init__(self, attempts: int, reason: SidebandError, cause: OpError) -> None:
        super().__init__()
        self.attempts = attempts
        self.reason = reason
        self.cause = cause


def _described(event: ModelError, kind: str) -> dict[str, Any]:
    return {**event.error, **({"kind": kind} if kind else {})}


def _reason(error: OpError, following: Retry | Compact | Park | GiveUp | None) -> SidebandError:
    data = error.as_dict()
    if isinstance(following, Park):
        return RunParked(error.message, until=following.until, hint=following.hint or error.hint, code=error.code)
    hint = following.hint if isinstance(following, GiveUp) else ""
    kind = following.kind if following is not None else ""
    return ModelFailed(data, hint=hint, kind=kind, exit_code=error.exit_code)
