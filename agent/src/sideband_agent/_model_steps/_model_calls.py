"""One model call. Plugins may change the request and the answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Any

from attrs import define, field
from sideband.broker import Broker, KeyReused
from sideband.hooks import (
    AfterProviderResponse,
    Answer,
    BeforeProviderRequest,
    Ephemeral,
    HookRegistry,
    thaw,
)
from sideband.messages import AssistantMessage, Message, parse_message, parse_messages, to_data
from sideband.ops import Capability, EffectUnknown, Grant, Origin
from sideband.providers import ProviderError
from sideband.settings import AgentSettings

from .._announcer import Announcer
from .._broker_calls import new_call
from .._choices import goal_message
from .._history import VisibleHistory
from .._run import Run
from .._session_tools import SessionTools
from ._fitting import fitted
from ._sent_history import SentHistory
from ._updates import MessageUpdates

_log = logging.getLogger("sideband.agent")
_OP = "llm.generate"
_GRANT = Grant.of([Capability("llm")])
# Long conversations have many values. The model's window limits them, so the limit for workers does not apply.
_MAX_VALUES = 5_000_000


@define
class _Request:
    """A request that plugins may change."""

    model: str
    messages: Sequence[Message]
    options: Mapping[str, Any]


@define(eq=False)
class ModelCalls:
    """The model calls of one agent's session, made through the broker.

    Args:
        broker: checks and records the calls and finds the provider.
        hooks: the agent's hooks, which may change requests and answers.
        announcer: emits parts of answers.
        settings: the agent's settings.
        session: the id of the session.
        parent: the tool call of the parent that this agent works for.
        history: the messages that the model sees.
        tools: the tools of the session.

    Attributes:
        updates: the updates of the last answer.
    """

    broker: Broker = field(repr=False)
    hooks: HookRegistry = field(repr=False)
    announcer: Announcer = field(repr=False)
    settings: AgentSettings = field(repr=False)
    session: str
    parent: str | None
    history: VisibleHistory = field(repr=False)
    tools: SessionTools = field(repr=False)
    updates: MessageUpdates = field(init=False, repr=False)
    _sent: SentHistory = field(factory=SentHistory, init=False, repr=False)

    async def ask(self, run: Run, step: str, attempt: int) -> AssistantMessage:
        """Return one answer of the run's model.

        Args:
            run: the run, which names the model.
            step: the step of the run.
            attempt: the number of the attempt at this step, from 1. Each attempt is a separate effect.

        Raises:
            OpError: if there is no answer; a ``ProviderError`` if the provider failed.
        """
        history = self.history.messages()
        request = await self._request(_Request(run.model, history, self._options(run)))
        self.updates = updates = MessageUpdates(self.announcer, request.model, held=self.hooks.has(Answer.hook))
        call = new_call(
            Origin(session=self.session, run=run.id, step=step, parent=self.parent),
            self.hooks,
            grant=_GRANT,
            on_part=updates.take,
            most_values=_MAX_VALUES,
            outer=run,
        )
        params = {"model": request.model, "messages": request.messages, **request.options}
        key = f"{self.session}:{run.id}:{step}"
        if attempt > 1:
            key = f"{key}~{attempt}"
        try:
            answer = await self.broker.dispatch(call, _OP, params, key=key)
        except (KeyReused, EffectUnknown):
            # requested before, with other content, by a host that has ended; model calls have no side effects: repeat
            answer = await self.broker.dispatch(call, _OP, params, key=f"{key}~{token_hex(4)}")
        await updates.begin()
        return fitted(await self._answer(request.model, answer), self._sent.used_ids(history))

    def _options(self, run: Run) -> dict[str, Any]:
        """Return the fields of the request other than its messages."""
        options = {
            "system": run.system_prompt,
            "tools": self.tools.sent.schemas(),
            "max_tokens": self.settings.max_tokens,
            "temperature": self.settings.temperature,
            "thinking": run.thinking,
            "cache_key": self.session,
        }
        return {name: value for name, value in options.items() if value not in (None, "", ())}

    async def _request(self, request: _Request) -> _Request:
        """Let plugins change the request, then repair its tool calls and results."""
        # skip the conversion of a long conversation to data if no plugin needs it
        stored = len(request.messages)
        if (goal := self.history.session.context().goal) is not None:
            request.messages = [*request.messages, goal_message(goal)]
        if self.hooks.has("ephemeral"):
            request.messages = [*request.messages, *await self._ephemeral(request.messages)]
        if self.hooks.has("before_provider_request"):
            request = await self._changed(request)
        request.messages = self._sent.prepare(request.messages, stored=stored)
        return request

    async def _ephemeral(self, messages: Sequence[Message]) -> list[Message]:
        added: list[Message] = []
        for found in await self.hooks.collect(Ephemeral([to_data(message) for message in messages])):
            try:
                added.append(parse_message(found.value))
            except ValueError as error:
                _log.warning("ignored an invalid message from plugin `%s`: %s", found.plugin, error)
        return added

    async def _changed(self, request: _Request) -> _Request:
        messages = [to_data(message) for message in request.messages]
        tools = [schema.model_dump() for schema in request.options.get("tools", ())]
        options = {**request.options, "tools": tools} if tools else request.options
        changed = await self.hooks.update(BeforeProviderRequest(request.model, messages, options))
        try:
            return _Request(changed.model, parse_messages(changed.messages), thaw(changed.options))
        except ValueError as error:
            _log.warning("ignored the request from `before_provider_request` hooks: %s", error)
            return request

    async def _answer(self, model: str, data: Mapping[str, Any]) -> AssistantMessage:
        try:
            answer = _as_answer(data)
        except ValueError as error:  # redaction may have replaced a count that equals a known secret
            raise ProviderError(model.partition(":")[0], f"the answer is invalid: {error}", retryable=True) from error
        if self.hooks.has("after_provider_response"):
            changed = await self.hooks.update(AfterProviderResponse(model, to_data(answer)))
            try:
                answer = _as_answer(self.broker.redactor.data(thaw(changed.response), sensitive_keys=False))
            except ValueError as error:
                _log.warning("ignored the answer from `after_provider_response` hooks: %s", error)
        if answer.stop in ("end", "tool_calls") and not answer.text.strip() and not answer.tool_calls:
            raise ProviderError(
                model.partition(":")[0],
                "the answer is empty",
                hint="try again or use another model",
                retryable=True,
            )
        return answer


def _as_answer(data: Mapping[str, Any]) -> AssistantMessage:
    answer = parse_message(data)
    if not isinstance(answer, AssistantMessage):
        raise ValueError(f"expected an assistant message, got the role `{answer.role}`")  # noqa: TRY004  the value is wrong, as in the rest
    return answer if answer.metadata is None else answer.model_copy(update={"metadata": None})  # the agent's own
