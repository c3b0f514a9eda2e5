"""Pair every tool call with its result. Providers reject calls without results and results without calls.

Histories are damaged by crashes, by plugins that change them, by imports, and by models that reuse an id. They are
repaired right before they are sent; the stored history is not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define, field
from sideband.messages import AssistantMessage, Message, TextPart, ToolCallPart, ToolResultMessage, UserMessage


@define
class _Turn:
    """An assistant message and its results, by the index of the call."""

    message: AssistantMessage
    results: dict[int, ToolResultMessage] = field(factory=dict)


_Item = _Turn | UserMessage


def repair(messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """Return a history that every provider accepts, and a notice for each change.

    Each message with tool calls is followed by the results of all of them, in the order of the calls. A call without a
    result gets an error result; a result without a call, or a second one, is dropped; a reused id is replaced. Messages
    without content, and failed answers, are dropped. A valid history is returned unchanged, so the function is
    idempotent.

    Args:
        messages: the history, oldest first.
    """
    if Pairing().are_whole(messages):
        return tuple(messages), ()
    notices: list[str] = []
    items = _attach_results(_drop_empty(messages, notices), notices)
    taken = {call.id for item in items if isinstance(item, _Turn) for call in item.message.tool_calls}
    used: set[str] = set()
    repaired: list[Message] = []
    for item in items:
        if isinstance(item, _Turn):
            repaired.extend(_whole(item, used, taken, notices))
        else:
            repaired.append(item)
    return tuple(repaired), tuple(notices)


@define
class Pairing:
    """Checks that every tool call is followed by its result, which is the usual case.

    Attributes:
        used: the ids of the calls so far.
    """

    used: set[str] = field(factory=set)
    _waiting: list[str] = field(factory=list, init=False)

    def copy(self) -> Pairing:
        """Return a copy of the state after a valid history."""
        return Pairing(set(self.used))

    def are_whole(self, messages: Iterable[Message]) -> bool:
        """Return whether these messages continue a valid history. Only then may more messages be checked."""
        return all(map(self._take, messages)) and not self._waiting

    def _take(self, message: Message) -> bool:
        if isinstance(message, ToolResultMessage):
            return bool(self._waiting) and self._waiting.pop(0) == message.call
        if self._waiting or not _has_content(message):
            return False
        if isinstance(message, AssistantMessage):
            self._waiting = [call.id for call in message.tool_calls]
            if message.stop == "error" or len(set(self._waiting)) < len(self._waiting):
                return False
            if not self.used.isdisjoint(self._waiting):
                return False
            self.used.update(self._waiting)
        return True


def _drop_empty(messages: Iterable[Message], notices: list[str]) -> Iterable[Message]:
    for message in messages:
        if isinstance(message, AssistantMessage) and message.stop == "error":
            continue  # not damaged: failed answers are stored for users but never sent
        if _has_content(message):
            yield message
        else:
            notices.append(f"dropped an empty {message.role} message")


def _has_content(message: Message) -> bool:
    if isinstance(message, ToolResultMessage):
        return True
    if isinstance(message, AssistantMessage) and message.tool_calls:
        return True
    if isinstance(message, AssistantMessage):
        return bool(message.text.strip())  # providers reject messages that contain only thinking
    return any(not isinstance(part, TextPart) or part.text.strip() for part in message.content)


def _attach_results(messages: Iterable[Message], notices: list[str]) -> list[_Item]:
    items: list[_Item] = []
    owners: dict[str, _Turn] = {}
    behind: _Turn | None = None  # the turn whose results may follow here
    for message in messages:
        if isinstance(message, AssistantMessage):
            behind = _Turn(message)
            items.append(behind)
            owners.update((call.id, behind) for call in message.tool_calls)
        elif isinstance(message, UserMessage):
            behind = None
            items.append(message)
        else:
            _attach(message, owners.get(message.call), behind, notices)
    return items


def _attach(result: ToolResultMessage, owner: _Turn | None, behind: _Turn | None, notices: list[str]) -> None:
    if owner is None:
        notices.append(f"dropped a result without a call: {_name(result)}")
        return
    calls = enumerate(owner.message.tool_calls)
    free = next((at for at, call in calls if call.id == result.call and at not in owner.results), None)
    if free is None:
        notices.append(f"dropped a second result of {_name(result)}")
        return
    if owner is not behind:
        notices.append(f"moved the result of {_name(result)} after its call")
    elif any(at > free for at in owner.results):
        notices.append(f"reordered the result of {_name(result)}")
    owner.results[free] = result


def _whole(turn: _Turn, used: set[str], taken: set[str], notices: list[str]) -> Iterable[Message]:
    """Yield the message with unique call ids, followed by a result for each of its calls."""
    calls = turn.message.tool_calls
    ids = [_own_id(call, used, taken, notices) for call in calls]
    if all(call.id == own for call, own in zip(calls, ids, strict=True)):
        yield turn.message
    else:
        yield _with_ids(turn.message, ids)
    for at, (call, own) in enumerate(zip(calls, ids, strict=True)):
        result = turn.results.get(at)
        if result is None:
            notices.append(f"added an error result for the call `{call.id}` of `{call.name}`")
            yield _missing(call, own)
        else:
            yield result if result.call == own else result.model_copy(update={"call": own})


def _own_id(call: ToolCallPart, used: set[str], taken: set[str], notices: list[str]) -> str:
    own = call.id
    count = 2
    while own in used or (own != call.id and own in taken):
        own = f"{call.id}-{count}"
        count += 1
    if own != call.id:
        notices.append(f"replaced the reused id `{call.id}` of a call of `{call.name}` by `{own}`")
    used.add(own)
    return own


def _with_ids(message: AssistantMessage, ids: Iterable[str]) -> AssistantMessage:
    own = iter(ids)
    content = tuple(
        part.model_copy(update={"id": next(own)}) if isinstance(part, ToolCallPart) else part
        for part in message.content
    )
    return message.model_copy(update={"content": content})


def _missing(call: ToolCallPart, own: str) -> ToolResultMessage:
    if call.problem is not None:
        text = f"This call was not run: {call.problem}"
    else:
        text = (
            "This call was interrupted and its result is unknown. It may have been executed in part or completely: "
            "check before you repeat it."
        )
    return ToolResultMessage(call=own, tool=call.name, content=text, is_error=True, metadata={"repaired": True})


def _name(result: ToolResultMessage) -> str:
    return f"`{result.tool}` (`{result.call}`)"
