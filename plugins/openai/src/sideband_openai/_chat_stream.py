"""Reader of a Chat Completions stream.

A response is complete once a choice has a ``finish_reason``. Most servers then send the usage and ``[DONE]``, but some
do not, so the end of the body is accepted too. HTTP detects a truncated body: it is an error if the body is shorter
than its Content-Length or the last chunk is missing. Other servers never send a ``finish_reason``: there, ``[DONE]`` or
the end of a JSON body completes the response.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import define, field
from sideband.messages import AssistantMessage, StopReason, TextPart, ThinkingPart, ToolCallPart, Usage
from sideband.providers import ModelRequest, StreamEvent, TextDelta, ThinkingDelta, ToolCallDelta
from sideband_model_client import ServerSentEvent, TextPieces, compact, whole_characters

from ._response import (
    CallIds,
    CharacterLimit,
    Malformed,
    ReportedError,
    as_text,
    event_data,
    tool_call,
    usage_of,
    with_calls,
)

_MAX_CALLS = 256
_STOPS: dict[str, StopReason] = {
    "stop": "end",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
}
# Reasons with which a server aborts a response.
_FAILURES = frozenset({"error", "abort", "aborted", "cancelled"})


@define(eq=False)
class _PartialCall:
    """A tool call, possibly still incomplete."""

    arguments: TextPieces
    id: str = ""
    name: str = ""


@define
class ChatReader:
    """Reads one response.

    Args:
        request: the model request.
        read_text: whether to look for tool calls in the text, where small models write them.
    """

    request: ModelRequest
    read_text: bool = True
    is_done: bool = field(default=False, init=False)
    _limit: CharacterLimit = field(factory=CharacterLimit, init=False)
    _text: TextPieces = field(init=False)
    _thought: TextPieces = field(init=False)
    _calls: list[_PartialCall] = field(factory=list, init=False)
    _slots: dict[int, _PartialCall] = field(factory=dict, init=False)
    _reason: str = field(default="", init=False)
    _refused: bool = field(default=False, init=False)
    _has_choice: bool = field(default=False, init=False)
    usage: Usage | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._text, self._thought = TextPieces(self._limit.count), TextPieces(self._limit.count)

    def feed(self, event: ServerSentEvent) -> Iterator[StreamEvent]:
        """Yield the parts that an event adds to the response.

        Raises:
            ReportedError: if the event reports an error.
            Malformed: if the event violates the protocol.
        """
        if event.data.strip() == "[DONE]":
            self.is_done = True
            return
        yield from self.feed_data(event_data(event))

    def feed_data(self, data: dict[str, Any]) -> Iterator[StreamEvent]:
        """Yield the parts of a chunk. Raises the same errors as ``feed``."""
        self._read_usage(data)
        groq = data.get("x_groq")
        if isinstance(groq, dict) and groq.get("error"):
            raise ReportedError(groq["error"])
        if data.get("error"):
            raise ReportedError(data["error"])
        if data.get("object") == "error":
            raise ReportedError(data)
        choices = data.get("choices") or ()
        if not isinstance(choices, list | tuple):
            raise Malformed("expected a list in `choices`")
        for choice in choices:
            # Only one choice was requested; the text of a second one would be mixed into it.
            if isinstance(choice, dict) and choice.get("index") in (None, 0):
                yield from self._read_choice(choice)

    def message(self) -> AssistantMessage:
        """Return the complete response.

        Raises:
            Malformed: if the response is incomplete, or announced tool calls are missing.
        """
        if not (self._reason or self.is_done):
            raise Malformed("the stream ended before the response was complete")
        if not self._has_choice:
            raise Malformed("the response has no answer: `choices` is missing or empty", is_whole=True)
        if self._reason in _FAILURES:
            raise Malformed(f"the server aborted the response ({self._reason})")
        stop = "refusal" if self._refused else _STOPS.get(self._reason, "end")
        text = self._text.text
        ids = CallIds(self.request.messages)
        calls = [
            tool_call(ids.unique(one.id), one.name, one.arguments.text, is_cut=stop == "length") for one in self._calls
        ]
        if not calls and self.read_text and stop in {"end", "tool_calls"}:
            text, calls = with_calls(text, self.request, ids)
        if stop in {"end", "tool_calls"}:
            stop = "tool_calls" if calls else "end"
        if self._reason in {"tool_calls", "function_call"} and not calls and not text:
            raise Malformed(f"the response ended with `{self._reason}` but contains no tool calls")
        thought = self._thought.text
        parts: list[TextPart | ThinkingPart | ToolCallPart] = [
            *([ThinkingPart(text=thought)] if thought else []),
            *([TextPart(text=text)] if text else []),
            *calls,
        ]
        return AssistantMessage(content=tuple(parts), stop=stop, usage=self.usage or Usage())

    def _read_choice(self, choice: dict[str, Any]) -> Iterator[StreamEvent]:
        self._has_choice = True
        self._read_usage(choice)
        if choice.get("error"):
            raise ReportedError(choice["error"])
        delta = choice.get("delta") or choice.get("message") or {}
        if not isinstance(delta, dict):
            raise Malformed("expected an object in `delta`")
        if thought := as_text(delta.get("reasoning_content")) or as_text(delta.get("reasoning")):
            yield from self._add_thinking(thought)
        yield from self._read_content(delta.get("content"))
        if refusal := as_text(delta.get("refusal")):
            self._refused = True
            yield from self._add_text(refusal)
        calls = delta.get("tool_calls") or ()
        if not isinstance(calls, list | tuple):
            raise Malformed("expected a list in `tool_calls`")
        for position, call in enumerate(calls):
            yield self._read_call(call, position)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._reason = reason

    def _read_content(self, content: Any) -> Iterator[StreamEvent]:
        if isinstance(content, str):
            yield from self._add_text(content)
        elif isinstance(content, list):
            for part in content:
                yield from self._read_part(part if isinstance(part, dict) else {})
        elif content is not None:
            raise Malformed("expected a string or a list in `content`")

    def _read_part(self, part: dict[str, Any]) -> Iterator[StreamEvent]:
        """Yield a part of a content list, which some services send."""
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            if isinstance(inner, list):
                inner = "".join(as_text(one.get("text")) for one in inner if isinstance(one, dict))
            yield from self._add_thinking(as_text(inner))
        else:
            yield from self._add_text(as_text(part.get("text")))

    def _add_text(self, piece: str) -> Iterator[StreamEvent]:
        if text := self._text.add(piece):
            yield TextDelta(text=text)

    def _add_thinking(self, piece: str) -> Iterator[StreamEvent]:
        if text := self._thought.add(piece):
            yield ThinkingDelta(text=text)

    def _read_call(self, data: Any, position: int) -> ToolCallDelta:
        if not isinstance(data, dict):
            raise Malformed("expected an object for a tool call")
        function = data.get("function") or {}
        if not isinstance(function, dict):
            raise Malformed("expected an object in `function`")
        id_, name = as_text(data.get("id")), whole_characters(as_text(function.get("name")))
        arguments = function.get("arguments")
        piece = compact(arguments) if isinstance(arguments, dict | list) else as_text(arguments)
        index = data.get("index")
        call = self._slot(index if isinstance(index, int) else position, id_, name, piece)
        new_name = name if not call.name else ""
        call.id, call.name = call.id or id_, call.name or name
        return ToolCallDelta(index=self._calls.index(call), name=new_name, arguments=call.arguments.add(piece))

    def _slot(self, index: int, id_: str, name: str, piece: str) -> _PartialCall:
        """Return the call that a piece belongs to. Some servers give all calls the index 0, or no index."""
        call = self._slots.get(index)
        if call is None or _is_another(call, id_, name, piece):
            if len(self._calls) >= _MAX_CALLS:
                raise Malformed(f"the response has more than {_MAX_CALLS} tool calls")
            call = _PartialCall(TextPieces(self._limit.count))
            self._calls.append(call)
            self._slots[index] = call
        return call

    def _read_usage(self, data: dict[str, Any]) -> None:
        """Store the usage in a chunk or a choice. Groq puts it into ``x_groq`` when it streams."""
        usage, groq = data.get("usage"), data.get("x_groq")
        if not isinstance(usage, dict) and isinstance(groq, dict):
            usage = groq.get("usage")
        if not isinstance(usage, dict):
            return
        details = usage.get("prompt_tokens_details")
        read = details if isinstance(details, dict) else {}
        details = usage.get("completion_tokens_details")
        written = details if isinstance(details, dict) else {}
        self.usage = usage_of(
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
