"""One model call: what is sent, as plugins leave it, and what comes back, as plugins leave it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Any

from attrs import define, field
from sideband.broker import Broker, KeyReused
from sideband.hooks import (
    AfterProviderResponse,
    BeforeProviderRequest,
    Ephemeral,
    HookRegistry,
    MessageStart,
    MessageUpdate,
    thaw,
)
from sideband.messages import AssistantMessage, Message, ToolResultMessage, parse_message, parse_messages, to_data
from sideband.ops import Capability, EffectUnknown, Grant, Origin
from sideband.providers import ProviderError
from sideband.settings import AgentSettings
from sideband.tools import ToolView

from .._announcer import Announcer
from .._broker_calls import new_call
from .._history import VisibleHistory, repair
from .._run import Run
from ._fitting import fitted, with_plain_names

_log = logging.getLogger("sideband.agent")
_OP = "llm.generate"
_GRANT = Grant.of([Capability("llm")])
# Long conversations have many values. What a model can read limits them, and not what a worker may ask for.
_MOST_VALUES = 5_000_000


@define
class _Request:
    """What is sent, on its way through the plugins."""

    model: str
    messages: Sequence[Message]
    options: Mapping[str, Any]


@define(eq=False)
class ModelCalls:
    """Asks models for one agent's session, through the broker.

    Args:
        broker: gates, records, and finds the provider.
        hooks: may change what is sent and what comes back.
        announcer: tells what arrives.
        settings: how models are asked.
        session: the id of the session.
        parent: the tool call of another agent that this one works for.
        history: what the model sees of the conversation.
        tools: those that it is told about.
    """

    broker: Broker = field(repr=False)
    hooks: HookRegistry = field(repr=False)
    announcer: Announcer = field(repr=False)
    settings: AgentSettings = field(repr=False)
    session: str
    parent: str | None
    history: VisibleHistory = field(repr=False)
    tools: ToolView = field(repr=False)

    async def ask(self, run: Run, step: str, attempt: int) -> AssistantMessage:
        """One answer of the run's model.

        Args:
            run: the run; its model is asked.
            step: the step of the run.
            attempt: how often this step was asked before, and 1 more: each attempt is an effect of its own.

        Raises:
            OpError: there is none; a ``ProviderError`` if it is the provider's failure.
        """
        history = self.history.messages()
        request = await self._request(_Request(run.model, history, self._options(run)))
        parts = _Parts(self.announcer, request.model)
        call = new_call(
            Origin(session=self.session, run=run.id, step=step, parent=self.parent),
            self.hooks,
            grant=_GRANT,
            on_part=parts.take,
            most_values=_MOST_VALUES,
        )
        params = {"model": request.model, "messages": request.messages, **request.options}
        key = f"{self.session}:{run.id}:{step}"
        if attempt > 1:
            key = f"{key}~{attempt}"
        try:
            answer = await self.broker.dispatch(call, _OP, params, key=key)
        except (KeyReused, EffectUnknown):
            # It was asked before, with other words, by a host that is gone. A model call changes nothing: ask anew.
            answer = await self.broker.dispatch(call, _OP, params, key=f"{key}~{token_hex(4)}")
        await parts.begin()
        return fitted(await self._answer(request.model, answer), history)

    def _options(self, run: Run) -> dict[str, Any]:
        """What is sent besides the messages."""
        options = {
            "system": run.system_prompt,
            "tools": [schema.model_dump() for schema in self.tools.schemas()],
            "max_tokens": self.settings.max_tokens,
            "temperature": self.settings.temperature,
            "thinking": self.settings.thinking,
            "cache_key": self.session,
        }
        return {name: value for name, value in options.items() if value not in (None, "", [])}

    async def _request(self, request: _Request) -> _Request:
        """What is sent, as plugins leave it: whole tool groups only, whatever they do."""
        # A long conversation is not turned into data and back for nobody.
        if self.hooks.has("ephemeral"):
            request.messages = [*request.messages, *await self._ephemeral(request.messages)]
        if self.hooks.has("before_provider_request"):
            request = await self._changed(request)
        repaired, notices = repair(request.messages)
        for notice in notices:
            _log.info("a request was repaired: %s", notice)
        request.messages = tuple(_sent(one) for one in repaired)
        return request

    async def _ephemeral(self, messages: Sequence[Message]) -> list[Message]:
        added: list[Message] = []
        for found in await self.hooks.collect(Ephemeral([to_data(message) for message in messages])):
            try:
                added.append(parse_message(found.value))
            except ValueError as error:
                _log.warning("`%s` added what is no message, and it is left out: %s", found.plugin, error)
        return added

    async def _changed(self, request: _Request) -> _Request:
        messages = [to_data(message) for message in request.messages]
        changed = await self.hooks.update(BeforeProviderRequest(request.model, messages, request.options))
        try:
            return _Request(changed.model, parse_messages(changed.messages), thaw(changed.options))
        except ValueError as error:
            _log.warning("what plugins made of a request is no list of messages, and is not used: %s", error)
            return request

    async def _answer(self, model: str, data: Mapping[str, Any]) -> AssistantMessage:
        try:
            answer = _as_answer(data)
        except ValueError as error:  # a count may be a known value by chance, and is one no more
            raise ProviderError(
                model.partition(":")[0], f"the answer can't be read: {error}", retryable=True
            ) from error
        if self.hooks.has("after_provider_response"):
            changed = await self.hooks.update(AfterProviderResponse(model, to_data(answer)))
            try:
                answer = _as_answer(self.broker.redactor.data(thaw(changed.response), sensitive_keys=False))
            except ValueError as error:
                _log.warning("what plugins made of an answer is none, and is not used: %s", error)
        if answer.stop in ("end", "tool_calls") and not answer.text.strip() and not answer.tool_calls:
            raise ProviderError(
                model.partition(":")[0],
                "the answer is empty",
                hint="ask again, or another model",
                retryable=True,
            )
        return answer


class _Parts:
    """Tells of an answer while it arrives."""

    def __init__(self, announcer: Announcer, model: str) -> None:
        self._announcer = announcer
        self._model = model
        self._begun = False

    async def take(self, part: Mapping[str, Any]) -> None:
        if part.get("type") == "finished":
            return
        await self.begin()
        await self._announcer.tell(MessageUpdate(part))

    async def begin(self) -> None:
        if not self._begun:
            self._begun = True
            await self._announcer.tell(MessageStart({"role": "assistant", "model": self._model}))


def _sent(message: Message) -> Message:
    """A message as it is sent: what is known of a result besides concerns no model, and may be much."""
    if isinstance(message, ToolResultMessage):
        return message.model_copy(update={"metadata": {}})
    return with_plain_names(message) if isinstance(message, AssistantMessage) else message


def _as_answer(data: Mapping[str, Any]) -> AssistantMessage:
    answer = parse_message(data)
    if not isinstance(answer, AssistantMessage):
        raise ValueError(f"it is a message of the role `{answer.role}`")  # noqa: TRY004  the value is wrong, as in the rest
    return answer
