"""Puts an answer together from its pieces, whichever protocol they came in."""

from __future__ import annotations

from collections.abc import Iterable
from secrets import token_hex
from typing import Any

from pydantic import ValidationError
from sideband.messages import Message, ToolCallPart, Usage
from sideband.providers import ModelRequest
from sideband_model_client import ServerSentEvent, parse_json, parse_object, whole_characters

_MOST_CHARACTERS = 16 << 20
_LONGEST_NAME = 256
_LONGEST_ID = 256


class Malformed(ValueError):
    """The answer says something that its protocol does not know."""


class ErrorInside(Exception):
    """The answer tells an error.

    Attributes:
        error: what it tells: an object, or a text.
    """

    def __init__(self, error: Any) -> None:
        super().__init__("an error instead of an answer")
        self.error = error


class Room:
    """How much an answer may still grow."""

    def __init__(self, most: int = _MOST_CHARACTERS) -> None:
        self._most = self._left = most

    def take(self, text: str) -> None:
        """Count text of the answer.

        Raises:
            Malformed: that is too much.
        """
        self._left -= len(text)
        if self._left < 0:
            raise Malformed(f"the answer has more than {self._most:,} characters")


class CallIds:
    """Makes the ids of tool calls unique in a conversation, as some servers begin anew with each answer.

    Args:
        messages: the conversation until now.
    """

    def __init__(self, messages: Iterable[Message]) -> None:
        self._used = {part.id for one in messages if one.role == "assistant" for part in one.tool_calls}

    def unique(self, given: str | None) -> str:
        """The id, or a new one if it is missing, too long or used."""
        usable = bool(given) and given is not None and len(given) <= _LONGEST_ID and given.isprintable()
        found = given if usable and given is not None and given not in self._used else f"call_{token_hex(12)}"
        self._used.add(found)
        return found


def tool_call(id_: str, name: str, arguments: str, *, is_cut: bool = False) -> ToolCallPart:
    """A call, whose arguments may be something else than a JSON object.

    Args:
        id_: unique in the conversation.
        name: the tool.
        arguments: the JSON text that the model wrote; nothing stands for no arguments.
        is_cut: whether the answer ended before the model was done, so that nothing may stand for anything.

    Raises:
        Malformed: it names no tool.
    """
    if not name or len(name) > _LONGEST_NAME:
        raise Malformed("a tool call names no tool")
    name = whole_characters(name)
    if not arguments.strip() and not is_cut:
        return ToolCallPart(id=id_, name=name)
    try:
        return ToolCallPart(id=id_, name=name, arguments=parse_object(arguments))
    except ValidationError:
        problem = "they hold a value that JSON does not have"
    except ValueError as error:
        problem = str(error)
    cut = "the answer was cut off at its limit of length; " if is_cut else ""
    return ToolCallPart(id=id_, name=name, problem=f"{cut}the arguments are no JSON object: {problem}")


def as_text(value: object) -> str:
    """What a field of text holds: nothing, if the server put something else there."""
    return value if isinstance(value, str) else ""


def usage_of(*, read: object, cached: object, stored: object, written: object, thought: object) -> Usage:
    """What a call used, from numbers that a server told. What is no count is 0.

    Args:
        read: all tokens that were read, from a cache or not.
        cached: those that came from a cache.
        stored: those that were put into one.
        written: all that were written.
        thought: those of them that were thoughts.
    """
    total = _count(read)
    from_cache = min(_count(cached), total)
    to_cache = min(_count(stored), total - from_cache)
    output = _count(written)
    return Usage(
        input=total - from_cache - to_cache,
        cache_read=from_cache,
        cache_write=to_cache,
        output=output,
        reasoning=min(_count(thought), output),
    )


def event_data(event: ServerSentEvent) -> dict[str, Any]:
    """The object that an event carries.

    Raises:
        ErrorInside: the event is of the type ``error``.
        Malformed: it carries none.
    """
    try:
        data = parse_json(event.data)
    except ValueError as error:
        raise Malformed(f"an event is no JSON: {error}") from None
    if not isinstance(data, dict):
        raise Malformed("an event is no JSON object")
    if event.event == "error":
        raise ErrorInside(data.get("error") or data)
    return data


def offered(request: ModelRequest) -> frozenset[str]:
    """The names of the tools that the model may call."""
    return frozenset() if request.tool_choice == "none" else frozenset(one.name for one in request.tools)


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else 0
