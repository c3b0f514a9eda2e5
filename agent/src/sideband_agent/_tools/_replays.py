"""Replays: a call that its host's death interrupted runs again, and its recorded effects are answered from the record.

Each attempt is its own effect with its own key: ``KEY`` for the first one, then ``KEY~1`` and so on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen
from sideband.approvals import ApprovalNeeded
from sideband.broker import Attempt, Broker, answer_as_data, recordable, refusal
from sideband.ledger import EffectRecord, query
from sideband.loading import Resume, strictest
from sideband.tools import Tool

from ._tool_context import ToolCallContext
from ._tool_questions import ToolQuestions

MOST_REPLAYS = 3
"""The maximum number of replays of a call. A call that ends its host each time must not do so forever.

Attempts that wait for an approval do not count.
"""

_SHOWN = 5
_MOST_ATTEMPTS = 1_000


@frozen
class InterruptedCall:
    """An interrupted call that may run again.

    Attributes:
        number: the number of the replay, from 1.
        key: the key of its effect.
        attempt: the attempt, with the record of the earlier ones.
        effect: the effect of the interrupted attempt.
        decisions: the answer of the person who was asked, as recorded.
    """

    number: int
    key: str
    attempt: Attempt
    effect: str
    decisions: tuple[Mapping[str, Any], ...] = ()

    def question(self, tool: Tool) -> str:
        """Return the question whether the call may run again."""
        done = self.attempt.skipped  # nothing has been requested again yet
        known = f"{len(done)} of its effects are recorded ({listed(done)})" if done else "none of its effects was begun"
        return (
            f"The call of {tool.name} was interrupted; {known}. Run it again? Recorded effects are not repeated "
            "but answered from the record."
        )


@frozen
class Replays:
    """Finds out whether an interrupted call may run again.

    Args:
        broker: knows the recorded effects of calls.
        folder: the folder of the ledger.
        policy: what the policy allows.
        questions: asks a person, if that is required.
    """

    broker: Broker
    folder: Path
    policy: Resume
    questions: ToolQuestions

    async def beginning(self, tool: Tool, ctx: ToolCallContext, attempt: Attempt) -> dict[str, str]:
        """Return what the record of a call notes, so that the same tool can run again with the same values."""
        note = {"started": attempt.started, "seed": attempt.seed}
        if not tool.source.startswith("skill "):  # whose calls compare the versions of its code themselves
            note["tool"] = await self.questions.registry.code(tool, ctx.plugin)
        return note

    def allowed(self, tool: Tool) -> Resume:
        """Return whether calls of the tool may run again."""
        return strictest(self.policy, tool.resume)

    async def repeated(self, ctx: ToolCallContext) -> Attempt:
        """Return another first attempt of a call, whose effects have the keys that those of the recorded one have."""
        records = await query(self.folder, key=ctx.key, op="tool.call", principal=ctx.principal, limit=1)
        return Attempt.first(ctx.key, seed=str(records[0].note.get("seed", "")) if records else "")

    async def last(self, key: str) -> tuple[int, str, Any] | None:
        """Return the last attempt of a call: its number, its state and its answer; ``None`` if no attempt was begun."""
        last = None
        for number in range(_MOST_ATTEMPTS):
            found = await self.broker.recall(attempt_key(key, number))
            if found is None:
                break
            last = number, *found
        return last

    async def find(self, tool: Tool, params: Mapping[str, Any], ctx: ToolCallContext) -> InterruptedCall | str:
        """Return how an interrupted call may run again, or why it may not.

        Args:
            tool: the tool.
            params: the parameters of its effect.
            ctx: the context of the call.

        Raises:
            ApprovalNeeded: if a person must be asked, and there is no approver.
        """
        allowed = self.allowed(tool)
        if allowed == "never":
            return "calls of this tool are not resumed"
        last = await self.last(ctx.key)
        number = last[0] if last else 0
        records = await query(self.folder, key=attempt_key(ctx.key, number), op="tool.call", limit=1)
        if await self._interruptions(ctx.key, number) > MOST_REPLAYS:
            return f"it was interrupted {MOST_REPLAYS + 1} times"
        if problem := _problem(tool, records, recordable(self.broker.redactor, params, params), ctx):
            return problem
        started, seed = str(records[0].note["started"]), str(records[0].note["seed"])
        attempts, principal = self.broker.attempts, ctx.principal
        attempt = await attempts.again(ctx.key, principal=principal, started=started, seed=seed, stops=True)
        if records[0].note.get("tool") != (await self.beginning(tool, ctx, attempt)).get("tool"):
            return "its tool has changed"
        found = InterruptedCall(number + 1, attempt_key(ctx.key, number + 1), attempt, records[0].effect)
        if allowed == "replay" or _waited(records):
            return found
        question = found.question(tool)
        answer = await self.questions.ask_again(tool, params["arguments"], ctx, question, found.key)
        return evolve(found, decisions=(answer_as_data(answer),)) if answer.allowed else refusal(answer)

    async def _interruptions(self, key: str, last: int) -> int:
        """Return how many of the attempts of a call were interrupted by the end of their host."""
        if last < MOST_REPLAYS:
            return last
        found = [
            await query(self.folder, key=attempt_key(key, number), op="tool.call", limit=1)
            for number in range(last + 1)
        ]
        return sum(not _waited(one) for one in found)


def _waited(records: Sequence[EffectRecord]) -> bool:
    """Return whether a recorded call ended to wait for an approval."""
    error = records[0].error if records else None
    return error is not None and error.get("code") == ApprovalNeeded.code


def _problem(tool: Tool, records: Sequence[EffectRecord], params: Mapping[str, Any], ctx: ToolCallContext) -> str:
    """Return why a recorded call cannot run again, or an empty string.

    Args:
        tool: its tool.
        records: its record, if any.
        params: the parameters with which it would run, as they would be recorded.
        ctx: the context in which it would run.
    """
    # A call that was cancelled, or that its deadline ended, has an outcome of its own; that of a running one is open.
    if not records or (records[0].status != "unknown" and not _waited(records)):
        return "it was not interrupted by the end of its host"
    if not {"started", "seed"} <= records[0].note.keys():
        return "its beginning is not recorded"
    if records[0].origin.principal != ctx.principal:
        return "it was made on behalf of another principal"
    # Values of the host may differ now, such as the channel, and are then those of now.
    recorded, again = (_filled(tool, one, ctx) for one in (records[0].params, json.loads(json.dumps(params))))
    return "" if recorded == again else "a guard has changed its arguments"


def _filled(tool: Tool, params: Mapping[str, Any], ctx: ToolCallContext) -> Mapping[str, Any]:
    """Return the parameters of a call with the values of the host."""
    arguments = params["arguments"]
    is_known = isinstance(arguments, Mapping)  # else it could not be recorded
    return {**params, "arguments": tool.filled(arguments, ctx.origin)} if is_known else params


def attempt_key(key: str, number: int) -> str:
    """Return the key of an attempt of the call with this key. The first attempt has the number 0."""
    return f"{key}~{number}" if number else key


def listed(records: tuple[EffectRecord, ...]) -> str:
    """Return the ops and ids of effects, for a sentence."""
    names = [f"{one.op}, effect {one.effect}" for one in records[:_SHOWN]]
    more = len(records) - len(names)
    return "; ".join([*names, f"and {more} more"] if more else names)
