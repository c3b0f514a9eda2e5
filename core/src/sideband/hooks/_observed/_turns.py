"""Events of turns and of messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from .._event import Message, ObserveEvent
from .._frozen import freeze

__all__ = [
    "MessageEnd",
    "MessageStart",
    "MessageUpdate",
    "TurnEnd",
    "TurnStart",
]


@frozen
class TurnStart(ObserveEvent):
    """A turn begins. A turn is one model call and the tool calls that it requests.

    Attributes:
        run: the id of the run.
        index: the index of the turn in its run, from 0.

    Example:
        >>> from sideband.hooks import TurnStart, hookimpl
        >>> @hookimpl
        ... def turn_start(event: TurnStart) -> None:
        ...     print(f"turn {event.index}")
        >>> turn_start(TurnStart("r1", 0))
        turn 0
    """

    run: str
    index: int


@frozen
class TurnEnd(ObserveEvent):
    """A turn has ended.

    Attributes:
        run: the id of the run.
        index: the index of the turn in its run, from 0.
        message: the message of the model.
        tool_results: the results of its tool calls, in the order of the calls.

    Example:
        >>> from sideband.hooks import TurnEnd, hookimpl
        >>> results: list[int] = []
        >>> @hookimpl
        ... def turn_end(event: TurnEnd) -> None:
        ...     results.append(len(event.tool_results))
    """

    run: str
    index: int
    message: Message = field(converter=freeze)
    tool_results: Sequence[Message] = field(default=(), converter=freeze)


@frozen
class MessageStart(ObserveEvent):
    """A message begins to arrive.

    Attributes:
        message: the part that is known so far; always contains the role.

    Example:
        >>> from sideband.hooks import MessageStart, hookimpl
        >>> roles: list[str] = []
        >>> @hookimpl
        ... def message_start(event: MessageStart) -> None:
        ...     roles.append(event.message["role"])
    """

    message: Message = field(converter=freeze)


@frozen
class MessageUpdate(ObserveEvent):
    """A part of a message has arrived.

    This hook is called often, so implementations must be fast.

    Attributes:
        delta: the new part.

    Example:
        >>> from sideband.hooks import MessageUpdate, hookimpl
        >>> @hookimpl
        ... async def message_update(event: MessageUpdate) -> None:
        ...     print(event.delta.get("text", ""), end="")
    """

    delta: Mapping[str, Any] = field(converter=freeze)


@frozen
class MessageEnd(ObserveEvent):
    """A message is complete.

    Attributes:
        message: the complete message.

    Example:
        >>> from sideband.hooks import MessageEnd, hookimpl
        >>> words: list[int] = []
        >>> @hookimpl
        ... def message_end(event: MessageEnd) -> None:
        ...     words.append(len(str(event.message["content"]).split()))
    """

    message: Message = field(converter=freeze)
