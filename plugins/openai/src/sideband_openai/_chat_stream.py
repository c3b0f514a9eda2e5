"""Reads the stream of Chat Completions.

An answer is whole once a choice has told its ``finish_reason``: all of its content came before. Most servers then send
the usage and ``[DONE]``; not all do, so a stream that ends properly after the reason is taken as well. Whether it ended
properly is for HTTP to say: a body that is shorter than announced, or whose last chunk is missing, is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import define, field
from sideband.messages import AssistantMessage, StopReason, TextPart, ThinkingPart, ToolCallPart, Usage
from sideband.providers import ModelRequest, StreamEvent, TextDelta, ThinkingDelta, ToolCallDelta
from sideband_model_client import ServerSentEvent, TextPieces, compact, whole_characters

from ._answer import CallIds, ErrorInside, Malformed, Room, as_text, event_data, offered, tool_call, usage_of
from ._tool_text import find_calls

_MOST_CALLS = 256
_STOPS: dict[str, StopReason] = {
    "stop": "end",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
}
# Neither is an answer: the server gave up on it.
_FAILURES = frozenset({"error", "abort", "aborted", "cancelled"})


@define(eq=False)
class _PartialCall:
    """A tool call, as far as it has come."""

    arguments: TextPieces
    id: str = ""
    name: str = ""


@define
class ChatReader:
    """Reads one answer.

    Args:
        request: what was asked.
        read_text: whether to look for tool calls in the text, as small models write them.
    """

    request: ModelRequest
    read_text: bool = True
    is_done: bool = field(default=False, init=False)
    _room: Room = field(factory=Room, init=False)
    _text: TextPieces = field(init=False)
    _thought: TextPieces = field(init=False)
    _calls: list[_PartialCall] = field(factory=list, init=False)
    _slots: dict[int, _PartialCall] = field(factory=dict, init=False)
    _reason: str = field(default="", init=False)
    _refused: bool = field(default=False, init=False)
    _usage: Usage = field(factory=Usage, init=False)

    def __attrs_post_init__(self) -> None:
        self._text, self._thought = TextPieces(self._room.take), TextPieces(self._room.take)

    def feed(self, event: ServerSentEvent) -> Iterator[StreamEvent]:
        """What an event adds to the answer.

        Raises:
            ErrorInside: it tells an error.
            Malformed: it is not what the protocol says.
        """
        if event.data.strip() == "[DONE]":
            self.is_done = True
            return
        yield from self.feed_data(event_data(event))

    def feed_data(self, data: dict[str, Any]) -> Iterator[StreamEvent]:
        """What a chunk, or a whole answer, adds. Raises what ``feed`` raises."""
        if data.get("error"):
            raise ErrorInside(data["error"])
        if data.get("object") == "error":
            raise ErrorInside(data)
        self._read_usage(data)
        choices = data.get("choices") or ()
        if not isinstance(choices, list | tuple):
            raise Malformed("`choices` is no list")
        for choice in choices:
            # Only one answer is asked for; a second one would mix with it.
            if isinstance(choice, dict) and choice.get("index") in (None, 0):
                yield from self._read_choice(choice)

    def message(self) -> AssistantMessage:
        """The whole answer.

        Raises:
            Malformed: it has not come to its end, or says nothing that it should.
        """
        if not self._reason:
            raise Malformed("the stream ended before the answer did")
        if self._reason in _FAILURES:
            raise Malformed(f"the server gave the answer up ({self._reason})")
        stop = "refusal" if self._refused else _STOPS.get(self._reason, "end")
        text = self._text.text
        ids = CallIds(self.request.messages)
        calls = [
            tool_call(ids.unique(one.id), one.name, one.arguments.text, is_cut=stop == "length") for one in self._calls
        ]
        if not calls and self.read_text and stop in {"end", "tool_calls"}:
            text, found = find_calls(text, offered(self.request))
            calls = [ToolCallPart(id=ids.unique(None), name=one.name, arguments=one.arguments) for one in found]
        if stop in {"end", "tool_calls"}:
            stop = "tool_calls" if calls else "end"
        if self._reason in {"tool_calls", "function_call"} and not calls and not text:
            raise Malformed("the answer announces tool calls and has none")
        thought = self._thought.text
        parts = [
            *([ThinkingPart(text=thought)] if thought else []),
            *([TextPart(text=text)] if text else []),
            *calls,
        ]
        return AssistantMessage(content=tuple(parts), stop=stop, usage=self._usage)

    def _read_choice(self, choice: dict[str, Any]) -> Iterator[StreamEvent]:
        if choice.get("error"):
            raise ErrorInside(choice["error"])
        delta = choice.get("delta") or choice.get("message") or {}
        if not isinstance(delta, dict):
            raise Malformed("a delta is no object")
        if thought := as_text(delta.get("reasoning_content")) or as_text(delta.get("reasoning")):
            yield from self._think(thought)
        yield from self._read_content(delta.get("content"))
        if refusal := as_text(delta.get("refusal")):
            self._refused = True
            yield from self._say(refusal)
        calls = delta.get("tool_calls") or ()
        if not isinstance(calls, list | tuple):
            raise Malformed("`tool_calls` is no list")
        for place, call in enumerate(calls):
            yield self._read_call(call, place)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._reason = reason

    def _read_content(self, content: Any) -> Iterator[StreamEvent]:
        if isinstance(content, str):
            yield from self._say(content)
        elif isinstance(content, list):
            for part in content:
                yield from self._read_part(part if isinstance(part, dict) else {})
        elif content is not None:
            raise Malformed("`content` is neither text nor a list of parts")

    def _read_part(self, part: dict[str, Any]) -> Iterator[StreamEvent]:
        """A part of a content that is a list, as some services send it."""
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            if isinstance(inner, list):
                inner = "".join(as_text(one.get("text")) for one in inner if isinstance(one, dict))
            yield from self._think(as_text(inner))
        else:
            yield from self._say(as_text(part.get("text")))

    def _say(self, piece: str) -> Iterator[StreamEvent]:
        if whole := self._text.add(piece):
            yield TextDelta(text=whole)

    def _think(self, piece: str) -> Iterator[StreamEvent]:
        if whole := self._thought.add(piece):
            yield ThinkingDelta(text=whole)

    def _read_call(self, data: Any, place: int) -> ToolCallDelta:
        if not isinstance(data, dict):
            raise Malformed("a tool call is no object")
        function = data.get("function") or {}
        if not isinstance(function, dict):
            raise Malformed("the function of a tool call is no object")
        id_, name = as_text(data.get("id")), whole_characters(as_text(function.get("name")))
        arguments = function.get("arguments")
        piece = compact(arguments) if isinstance(arguments, dict | list) else as_text(arguments)
        index = data.get("index")
        call = self._slot(index if isinstance(index, int) else place, id_, name, piece)
        told = name if not call.name else ""
        call.id, call.name = call.id or id_, call.name or name
        return ToolCallDelta(index=self._calls.index(call), name=told, arguments=call.arguments.add(piece))

    def _slot(self, index: int, id_: str, name: str, piece: str) -> _PartialCall:
        """The call that a piece belongs to. Some servers number all their calls 0, or not at all."""
        call = self._slots.get(index)
        if call is None or _is_another(call, id_, name, piece):
            if len(self._calls) >= _MOST_CALLS:
                raise Malformed(f"the answer has more than {_MOST_CALLS} tool calls")
            call = _PartialCall(TextPieces(self._room.take))
            self._calls.append(call)
            self._slots[index] = call
        return call

    def _read_usage(self, data: dict[str, Any]) -> None:
        usage = data.get("usage")
        if not isinstance(usage, dict):
            return
        details = usage.get("prompt_tokens_details")
        read = details if isinstance(details, dict) else {}
        details = usage.get("completion_tokens_details")
        written = details if isinstance(details, dict) else {}
        self._usage = usage_of(
            read=usage.get("prompt_tokens"),
            cached=read.get("cached_tokens", usage.get("prompt_cache_hit_tokens")),
            stored=read.get("cache_write_tokens"),
            written=usage.get("completion_tokens"),
            thought=written.get("reasoning_tokens"),
        )


def _is_another(call: _PartialCall, id_: str, name: str, piece: str) -> bool:
    if id_ and call.id:
        return id_ != call.id
    if not (name and call.name):
        return False
    return name != call.name or (call.arguments.last == "}" and piece.startswith("{"))
