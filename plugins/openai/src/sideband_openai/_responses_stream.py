"""Reader of a Responses stream. The last event holds the whole response; without it, the stream is incomplete."""

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

_MAX_ITEMS = 1_024
_ENDS = frozenset({"response.completed", "response.incomplete"})
_THINKING_EVENTS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_TEXT_EVENTS = frozenset({"response.output_text.delta", "response.refusal.delta"})

_Part = TextPart | ThinkingPart | ToolCallPart


@define
class ResponsesReader:
    """Reads one response.

    Args:
        request: the model request.
        read_text: whether to look for tool calls in the text, where small models write them.
    """

    request: ModelRequest
    read_text: bool = False
    is_done: bool = field(default=False, init=False)
    _limit: CharacterLimit = field(factory=CharacterLimit, init=False)
    _texts: dict[str, TextPieces] = field(factory=dict, init=False)
    _calls: dict[object, int] = field(factory=dict, init=False)
    _items: list[Any] = field(factory=list, init=False)
    _response: dict[str, Any] = field(factory=dict, init=False)

    def feed(self, event: ServerSentEvent) -> Iterator[StreamEvent]:
        """Yield the parts that an event adds to the response. Unknown events are ignored.

        Raises:
            ReportedError: if the event reports an error.
            Malformed: if the event violates the protocol.
        """
        if event.data.strip() == "[DONE]":
            return
        data = event_data(event)
        kind = as_text(data.get("type")) or event.event
        if kind == "error":
            raise ReportedError(data.get("error") or data)
        if kind == "response.failed" or kind in _ENDS:
            self.feed_data(_object(data.get("response"), "`response`"))
        elif kind in _TEXT_EVENTS or kind in _THINKING_EVENTS:
            yield from self._add_text(kind, as_text(data.get("delta")))
        elif kind == "response.output_item.added":
            yield from self._begin_call(data)
        elif kind == "response.function_call_arguments.delta":
            yield from self._extend_call(data)
        elif kind == "response.output_item.done":
            self._add_item(data.get("item"))
        elif not kind.startswith("response.") and data.get("error"):
            raise ReportedError(data["error"])

    def feed_data(self, data: dict[str, Any]) -> tuple[StreamEvent, ...]:
        """Store the whole response. Raises the same errors as ``feed``."""
        self._response, status = data, data.get("status")
        if data.get("error") or status == "failed":
            raise ReportedError(data.get("error") or "the service reported status `failed`")
        if status not in ("completed", "incomplete"):
            raise Malformed(f"unexpected status of the response: {status!r}", is_whole=True)
        self.is_done = True
        return ()

    def message(self) -> AssistantMessage:
        """Return the complete response.

        Raises:
            Malformed: if the response is incomplete or violates the protocol.
        """
        if not self.is_done:
            raise Malformed("the stream ended before the response was complete")
        output = self._response.get("output") or self._items
        if not isinstance(output, list) or len(output) > _MAX_ITEMS:
            raise Malformed(f"expected a list of at most {_MAX_ITEMS:,} items in `output`")
        ids = CallIds(self.request.messages)
        is_cut = self._response.get("status") == "incomplete"
        parts = [part for item in output for part in _parts(item, ids, is_cut=is_cut)]
        stop = self._stop(output)
        if self.read_text and stop == "end":
            parts = self._with_calls_in_text(parts, ids)
        if stop == "end" and any(isinstance(one, ToolCallPart) for one in parts):
            stop = "tool_calls"
        return AssistantMessage(content=tuple(parts), stop=stop, usage=self.usage or Usage())

    def _stop(self, output: list[Any]) -> StopReason:
        if self._response.get("status") == "incomplete":
            details = self._response.get("incomplete_details")
            reason = details.get("reason") if isinstance(details, dict) else None
            return "refusal" if reason == "content_filter" else "length"
        contents = [item.get("content") for item in output if isinstance(item, dict)]
        parts = [part for content in contents if isinstance(content, list) for part in content]
        refused = any(isinstance(part, dict) and part.get("type") == "refusal" for part in parts)
        return "refusal" if refused else "end"

    def _with_calls_in_text(self, parts: list[_Part], ids: CallIds) -> list[_Part]:
        if any(isinstance(one, ToolCallPart) for one in parts):
            return parts
        thoughts = [one for one in parts if isinstance(one, ThinkingPart)]
        text = "".join(one.text for one in parts if isinstance(one, TextPart))
        text, calls = with_calls(text, self.request, ids)
        if not calls:
            return parts
        return [*thoughts, *([TextPart(text=text)] if text else []), *calls]

    def _add_text(self, kind: str, piece: str) -> Iterator[StreamEvent]:
        text = self._texts.setdefault(kind, TextPieces(self._limit.count)).add(piece)
        if text:
            yield ThinkingDelta(text=text) if kind in _THINKING_EVENTS else TextDelta(text=text)

    def _begin_call(self, data: dict[str, Any]) -> Iterator[StreamEvent]:
        item = data.get("item")
        if isinstance(item, dict) and item.get("type") == "function_call" and len(self._calls) < _MAX_ITEMS:
            index = self._calls.setdefault(_call_key(data), len(self._calls))
            yield ToolCallDelta(index=index, name=whole_characters(as_text(item.get("name"))))

    def _extend_call(self, data: dict[str, Any]) -> Iterator[StreamEvent]:
        piece = as_text(data.get("delta"))
        self._limit.count(piece)
        if (index := self._calls.get(_call_key(data))) is not None:
            yield ToolCallDelta(index=index, arguments=whole_characters(piece))

    def _add_item(self, item: Any) -> None:
        if len(self._items) >= _MAX_ITEMS:
            raise Malformed(f"the response has more than {_MAX_ITEMS:,} items")
        self._items.append(item)

    @property
    def usage(self) -> Usage | None:
        """The usage, which only the whole response contains."""
        usage = _dict(self._response.get("usage"))
        if not usage:
            return None
        read, written = _dict(usage.get("input_tokens_details")), _dict(usage.get("output_tokens_details"))
        return usage_of(
            read=usage.get("input_tokens"),
            cached=read.get("cached_tokens"),
            stored=read.get("cache_write_tokens"),
            written=usage.get("output_tokens"),
            thought=written.get("reasoning_tokens"),
        )


def _parts(item: Any, ids: CallIds, *, is_cut: bool) -> Iterator[_Part]:
    """Yield the parts of an output item. Other types of items belong to built-in tools, which are never requested."""
    item = _object(item, "an item of `output`")
    if item.get("type") == "function_call":
        id_, name = as_text(item.get("call_id")), as_text(item.get("name"))
        unfinished = is_cut and item.get("status") != "completed"
        yield tool_call(ids.unique(id_), name, as_text(item.get("arguments")), is_cut=unfinished)
    elif item.get("type") == "reasoning":
        yield _thought(item)
    elif item.get("type") == "message":
        for part in _list(item.get("content")):
            text = whole_characters(as_text(_dict(part).get("text")) or as_text(_dict(part).get("refusal")))
            if text:
                yield TextPart(text=text)


def _thought(item: dict[str, Any]) -> ThinkingPart:
    """Return the reasoning of an item. The signature is the item itself, so that it can be sent back unchanged."""
    pieces = [*_list(item.get("summary")), *_list(item.get("content"))]
    text = "\n\n".join(found for one in pieces if (found := as_text(_dict(one).get("text"))))
    encrypted = as_text(item.get("encrypted_content"))
    if not encrypted:
        return ThinkingPart(text=whole_characters(text))
    kept = {"type": "reasoning", "summary": _list(item.get("summary")), "encrypted_content": encrypted}
    if as_text(item.get("id")):
        kept["id"] = item["id"]
    return ThinkingPart(text=whole_characters(text), signature=whole_characters(compact(kept)), redacted=not text)


def _call_key(data: dict[str, Any]) -> object:
    index = data.get("output_index")
    return index if isinstance(index, int) else as_text(data.get("item_id"))


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Malformed(f"expected an object for {what}")
    return value


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
