"""One model call: what is sent, as plugins leave it, and what comes back, as plugins leave it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Any

import anyio
from attrs import define, field
from sideband.broker import Broker, Call, KeyReused
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

from .._announcer import Announcer
from .._history._repair import repair
from ._fitting import fitted, with_plain_names

__all__ = ["ModelCalls", "Question"]

_log = logging.getLogger("sideband.agent")
_OP = "llm.generate"
_GRANT = Grant.of([Capability("llm")])
_LONGEST = 86_400.0
# Long conversations have many values. What a model can read limits them, and not what a worker may ask for.
_MOST_VALUES = 5_000_000


@define
class Question:
    """What is sent besides the messages.

    Attributes:
        model: ``provider:model``.
        messages: oldest first.
        options: ``system``, ``tools`` and everything else of a ``ModelRequest``.
        session, run, step: who asks.
        parent: the tool call of another agent that this one works for.
        attempt: how often this step was asked before, and 1 more: each attempt is an effect of its own.
    """

    model: str
    messages: Sequence[Message]
    options: Mapping[str, Any]
    session: str
    run: str
    step: str
    parent: str | None = None
    attempt: int = 1


@define
class _Request:
    """What is sent, on its way through the plugins."""

    model: str
    messages: Sequence[Message]
    options: Mapping[str, Any]


@define(eq=False)
class ModelCalls:
    """Asks models, through the broker.

    Args:
        broker: gates, records, and finds the provider.
        hooks: may change what is sent and what comes back.
        announcer: tells what arrives.
    """

    broker: Broker = field(repr=False)
    hooks: HookRegistry = field(repr=False)
    announcer: Announcer = field(repr=False)

    async def ask(self, question: Question) -> AssistantMessage:
        """One answer of a model.

        Raises:
            OpError: there is none; a ``ProviderError`` if it is the provider's failure.
        """
        request = await self._request(question)
        parts = _Parts(self.announcer, request.model)
        call = Call(
            id=token_hex(16),
            grant=_GRANT,
            domain=f"agent:{question.session}",
            origin=Origin(session=question.session, run=question.run, step=question.step, parent=question.parent),
            deadline=anyio.current_time() + _LONGEST,
            hooks=self.hooks,
            on_part=parts.take,
            most_values=_MOST_VALUES,
        )
        params = {"model": request.model, "messages": request.messages, **request.options}
        key = f"{question.session}:{question.run}:{question.step}"
        if question.attempt > 1:
            key = f"{key}~{question.attempt}"
        try:
            answer = await self.broker.dispatch(call, _OP, params, key=key)
        except (KeyReused, EffectUnknown):
            # It was asked before, with other words, by a host that is gone. A model call changes nothing: ask anew.
            answer = await self.broker.dispatch(call, _OP, params, key=f"{key}~{token_hex(4)}")
        await parts.begin()
        return fitted(await self._answer(request.model, answer), question.messages)

    async def _request(self, question: Question) -> _Request:
        """What is sent: whole tool groups only, whatever plugins do."""
        request = _Request(question.model, question.messages, question.options)
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
