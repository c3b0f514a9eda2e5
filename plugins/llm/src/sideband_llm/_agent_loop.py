"""The loop of `llm.agent`: call the model, run the tools that it calls, until it answers or a limit is reached.

The model is as untrusted as any: it calls nothing but the tools that the skill named, and each call is an effect with
rights of the skill that are narrowed to those of the caller.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
from attrs import define, field
from sideband.approvals import ApprovalNeeded
from sideband.contexts import HandlerContext, SkillTool
from sideband.messages import AssistantMessage, ToolCallPart, ToolResultMessage
from sideband.ops import ContextRevoked, EffectInFlight, EffectUnknown, OpError
from sideband.suggestions import did_you_mean

from ._conversation import Conversation, can_correct, data_of
from ._errors import LlmAgentError
from ._skill_models import LlmAgentAnswer, LlmAgentParams, MadeToolCall

_MAX_CALLS, _PARALLEL = 16, 4
_MAX_RESULT = 40_000
_MAX_LISTED = 1_000
# They end the loop: the host has not answered, and the model cannot know what happened.
_NOT_FOR_MODELS = (ApprovalNeeded, ContextRevoked, EffectInFlight, EffectUnknown)


@define(eq=False)
class AgentLoop:
    """One loop.

    Args:
        params: the parameters of the op.
        ctx: its context.
        talk: the conversation, which begins with the task.
        tools: the tools by the names that models see.
    """

    _params: LlmAgentParams
    _ctx: HandlerContext
    _talk: Conversation
    _tools: Mapping[str, SkillTool]
    _made: list[MadeToolCall] = field(factory=list, init=False)
    _repairs: int = field(default=0, init=False)
    _phase: str = field(default="model", init=False)

    async def run(self) -> LlmAgentAnswer:
        """Run the loop.

        Raises:
            LlmAgentError: if it ends without an answer, unless ``partial`` is set.
            ApprovalNeeded: if a tool waits for an approval.
            EffectUnknown: if the outcome of an effect of an earlier attempt is unknown.
        """
        try:
            with anyio.move_on_after(self._params.timeout):
                return await self._run()
            problem = f"it took longer than {self._params.timeout:g} s (in phase `{self._phase}`)"
            raise self._ended("deadline", problem, "raise `timeout`, or split the task")
        except LlmAgentError as error:
            if not self._params.partial:
                raise
            return self._answer(self._last_text(), error=error)

    async def _run(self) -> LlmAgentAnswer:
        while self._talk.calls < self._params.max_iterations:
            answer = await self._ask()
            if answer.tool_calls:
                self._phase = "tool"
                self._talk.messages += await self._call_all(answer.tool_calls)
                continue
            if self._talk.schema is None:
                return self._answer(answer.text)
            data, problem = data_of(answer, self._talk.schema)
            if problem is None:
                return self._answer(answer.text, data)
            if self._repairs == self._params.repairs or not can_correct(answer):
                hint = "describe the fields in the schema and the prompt, or use another model"
                raise self._ended("output", f"the answer does not fit the output schema: {problem}", hint)
            self._repairs += 1
            self._talk.correct(problem)
        most = self._params.max_iterations
        hint = "raise `max_iterations`, split the task, or use another model"
        raise self._ended("iterations", f"the model has not answered after {most} model calls", hint)

    async def _ask(self) -> AssistantMessage:
        self._phase = "model"
        self._check_budget()
        try:
            return await self._talk.ask()
        except _NOT_FOR_MODELS:
            raise
        except OpError as error:
            raise self._ended("model", error.message, error.hint, error) from error

    def _check_budget(self) -> None:
        budget, usage = self._params.budget, self._talk.usage
        if budget.tokens is not None and usage.context >= budget.tokens:
            used = f"{usage.context:,} of {budget.tokens:,} tokens"
        elif budget.money is not None and self._talk.calls and usage.cost is None:
            used = "an unknown amount of money, since the prices of the model are unknown"
        elif budget.money is not None and (usage.cost or 0) >= budget.money:
            used = f"${usage.cost:.6f} of ${budget.money:.6f}"
        else:
            return
        raise self._ended("budget", f"its model calls have used {used}", "raise `budget`, or split the task")

    async def _call_all(self, calls: Sequence[ToolCallPart]) -> list[ToolResultMessage]:
        """Run the tool calls of one answer concurrently, and return their results in order."""
        answers: list[tuple[MadeToolCall, ToolResultMessage] | None] = [None] * len(calls)
        failures: list[Exception] = []
        limiter = anyio.CapacityLimiter(_PARALLEL)

        async def run(number: int) -> None:
            async with limiter:
                try:
                    answers[number] = await self._call(number, calls[number])
                except Exception as error:  # noqa: BLE001  raised again when the other calls have ended
                    failures.append(error)

        async with anyio.create_task_group() as tasks:
            for number in range(len(calls)):
                tasks.start_soon(run, number)
        if failures:
            raise failures[0]
        done = [one for one in answers if one is not None]
        self._made += [made for made, _ in done]
        return [message for _, message in done]

    async def _call(self, number: int, part: ToolCallPart) -> tuple[MadeToolCall, ToolResultMessage]:
        tool = self._tools.get(part.name)
        made = MadeToolCall(name=part.name[:200] if tool is None else tool.name, arguments=dict(part.arguments))
        if number >= _MAX_CALLS:
            return _refused(made, part, "llm.calls", f"not run: an answer may have {_MAX_CALLS} tool calls")
        if tool is None:
            text = f"unknown tool `{part.name[:200]}`{did_you_mean(part.name[:200], self._tools)}; not run"
            return _refused(made, part, "tool.unknown", text)
        if part.problem is not None:
            return _refused(made, part, "call.arguments", f"not run: {part.problem}")
        try:
            arguments = tool.check(part.arguments)
        except ValueError as error:
            return _refused(made, part, "call.arguments", f"not run: {error}")
        try:
            result = await self._ctx.call_tool(tool.name, arguments, rights="caller")
        except _NOT_FOR_MODELS:
            raise
        except OpError as error:
            return _refused(made, part, error.code, error.message)
        return made, ToolResultMessage(call=part.id, tool=part.name, content=_shown(result))

    def _answer(self, content: str, data: Any = None, error: LlmAgentError | None = None) -> LlmAgentAnswer:
        return LlmAgentAnswer(
            content=content,
            data=data,
            usage=self._talk.usage,
            iterations=self._talk.calls,
            tool_calls=tuple(self._made[:_MAX_LISTED]),
            error=None if error is None else error.as_dict(),
        )

    def _last_text(self) -> str:
        said = [one.text for one in self._talk.messages if isinstance(one, AssistantMessage)]
        return said[-1] if said else ""

    def _ended(self, phase: str, problem: str, hint: str, cause: OpError | None = None) -> LlmAgentError:
        code = "llm.agent" if cause is None else cause.code
        retryable = cause is not None and cause.retryable
        error = LlmAgentError(phase, max(1, self._talk.calls), problem, hint, cause=code, retryable=retryable)
        error.tokens, error.money = self._talk.usage.context, self._talk.usage.cost
        return error


def _refused(made: MadeToolCall, part: ToolCallPart, code: str, text: str) -> tuple[MadeToolCall, ToolResultMessage]:
    message = ToolResultMessage(call=part.id, tool=part.name, content=_shown(text), is_error=True)
    return made.model_copy(update={"error": code}), message


def _shown(result: Any) -> str:
    """Return a result as text for the model. The host has redacted it, so cutting it cannot split a secret."""
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    if len(text) <= _MAX_RESULT:
        return text
    half = _MAX_RESULT // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters omitted …]\n{text[-half:]}"
