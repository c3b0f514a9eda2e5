"""Parts of a response that both protocols share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from secrets import token_hex
from typing import Any

from pydantic import ValidationError
from sideband.messages import AssistantMessage, FilePart, Message, ToolCallPart, Usage
from sideband.providers import ModelRequest
from sideband_model_client import ServerSentEvent, file_text, parse_json, parse_object, token_count, whole_characters

from ._text_calls import find_calls

_MAX_CHARACTERS = 16 << 20
_MAX_NAME_LENGTH = 256
_MAX_ID_LENGTH = 256


class Malformed(ValueError):
    """The response violates the protocol.

    Attributes:
        is_whole: whether it arrived whole, so that the server would send the like again.
    """

    def __init__(self, problem: str, *, is_whole: bool = False) -> None:
        super().__init__(problem)
        self.is_whole = is_whole


class ReportedError(Exception):
    """The response reports an error.

    Attributes:
        error: the reported error: an object or a string.
    """

    def __init__(self, error: Any) -> None:
        super().__init__("the response reports an error")
        self.error = error


class CharacterLimit:
    """The limit on the number of characters in a response."""

    def __init__(self, limit: int = _MAX_CHARACTERS) -> None:
        self._limit = self._left = limit

    def count(self, text: str) -> None:
        """Count the characters of ``text``.

        Raises:
            Malformed: if the limit is exceeded.
        """
        self._left -= len(text)
        if self._left < 0:
            raise Malformed(f"the response exceeds {self._limit:,} characters")


class CallIds:
    """Makes tool call ids unique in a conversation. Some servers number them from the start in each response.

    Args:
        messages: the conversation so far.
    """

    def __init__(self, messages: Iterable[Message]) -> None:
        self._messages = messages

    @cached_property
    def _used(self) -> set[str]:
        """The ids so far. Most answers have no calls and do not need them."""
        answers = (one for one in self._messages if one.role == "assistant")
        return {part.id for one in answers for part in one.content if part.type == "tool_call"}

    def unique(self, given: str | None) -> str:
        """Return the id, or a new one if it is missing, too long, not printable or already used."""
        usable = bool(given) and given is not None and len(given) <= _MAX_ID_LENGTH and given.isprintable()
        found = given if usable and given is not None and given not in self._used else f"call_{token_hex(12)}"
        self._used.add(found)
        return found


def tool_call(id_: str, name: str, arguments: str, *, is_cut: bool = False) -> ToolCallPart:
    """Return a tool call. If the arguments are not a JSON object, the call has a ``problem``.

    Args:
        id_: the id, unique in the conversation.
        name: the name of the tool.
        arguments: the JSON text from the model. Blank text means no arguments, unless the response was truncated.
        is_cut: whether the response was truncated.

    Raises:
        Malformed: if the name is missing or too long.
    """
    if not name or len(name) > _MAX_NAME_LENGTH:
        raise Malformed("missing or invalid tool name in a tool call")
    name = whole_characters(name)
    if not arguments.strip() and not is_cut:
        return ToolCallPart(id=id_, name=name)
    try:
        return ToolCallPart(id=id_, name=name, arguments=parse_object(arguments))
    except ValidationError:
        problem = "contains a value that JSON does not support"
    except ValueError as error:
        problem = str(error)
    cut = "the response was cut off at the length limit; " if is_cut else ""
    return ToolCallPart(id=id_, name=name, problem=f"{cut}invalid arguments: {problem}")


def as_text(value: object) -> str:
    """Return the value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def usage_of(*, read: object, cached: object, stored: object, written: object, thought: object) -> Usage:
    """Return the usage of a call from the numbers of the server. Invalid counts are 0.

    Args:
        read: all input tokens.
        cached: the input tokens read from a cache.
        stored: the input tokens written to a cache.
        written: all output tokens.
        thought: the output tokens used for reasoning.
    """
    total = token_count(read) or 0
    from_cache = min(token_count(cached) or 0, total)
    to_cache = min(token_count(stored) or 0, total - from_cache)
    output = token_count(written) or 0
    return Usage(
        input=total - from_cache - to_cache,
        cache_read=from_cache,
        cache_write=to_cache,
        output=output,
        reasoning=min(token_count(thought) or 0, output),
    )


def event_data(event: ServerSentEvent) -> dict[str, Any]:
    """Return the JSON object in an event.

    Raises:
        ReportedError: if the type of the event is ``error``.
        Malformed: if the data is not a JSON object.
    """
    try:
        data = parse_json(event.data)
    except ValueError as error:
        raise Malformed(f"invalid JSON in an event: {error}") from None
    if not isinstance(data, dict):
        raise Malformed("expected a JSON object in an event")
    if event.event == "error":
        raise ReportedError(data.get("error") or data)
    return data


def with_calls(text: str, request: ModelRequest, ids: CallIds) -> tuple[str, list[ToolCallPart]]:
    """Return the text of a response without the tool calls in it, and the calls.

    If the request demands JSON, the text is the answer.
    """
    if request.tool_choice == "none" or request.output_schema is not None:
        return text, []
    tools = {one.name: one.parameters for one in request.tools}
    text, found = find_calls(text, tools, lambda: _texts_of_others(request.messages))
    return text, [ToolCallPart(id=ids.unique(None), name=one.name, arguments=one.arguments) for one in found]


def _texts_of_others(messages: Iterable[Message]) -> Iterator[str]:
    """Yield what users and tools wrote, with attached text files. The model may have copied a call from it."""
    for message in messages:
        if isinstance(message, AssistantMessage):
            continue
        yield message.text
        for part in message.content:
            if isinstance(part, FilePart) and (text := file_text(part)) is not None:
                yield text
