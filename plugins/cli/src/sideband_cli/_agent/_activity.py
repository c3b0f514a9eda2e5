"""What people are told of a run while it goes on: text as it comes, a line for each tool, retries, compactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .._terminal._progressbar import how_far
from .._terminal._tables import paragraph
from .._terminal._words import describe_arguments, describe_duration, fitted, one_line

if TYPE_CHECKING:
    from sideband import hooks

_LONGEST_OUTCOME = 400
_NOT_RUN = {
    "effect.unknown": "not known",
    "tool.denied": "denied",
    "tool.rejected": "rejected",
    "tool.stopped": "stopped",
}


class Sink(Protocol):
    """Where it is shown. What it gets is not clean yet."""

    def text(self, part: str) -> None:
        """More of what the model says."""

    def thinking(self, part: str) -> None:
        """More of what the model thinks."""

    def end_text(self) -> None:
        """What the model says or thinks goes on with a new line, if at all."""

    def aside(self, text: str) -> None:
        """What the model said before it calls tools: text that is no answer yet."""

    def line(self, text: str) -> None:
        """Something about the run, on a line of its own."""

    def progress(self, text: str) -> None:
        """What goes on right now, in place of what went on before; empty for nothing."""


class _Running(NamedTuple):
    tool: str
    arguments: str

    @property
    def label(self) -> str:
        return f"{self.tool} {self.arguments}".rstrip()


class Activity:
    """Takes the events of an agent, and shows what people want to know of them.

    Args:
        sink: where it is shown.
        thinking: whether what the model thinks is shown.
    """

    def __init__(self, sink: Sink, *, thinking: bool = False) -> None:
        self._sink = sink
        self._thinking = thinking
        self._asked: dict[str, _Running] = {}
        self._running: dict[str, _Running] = {}
        self._ended: set[str] = set()
        self._takers: dict[str, Callable[[Any], None]] = {
            "message_update": self._more,
            "message_end": self._said,
            "tool_execution_start": self._tool_starts,
            "tool_execution_update": self._tool_goes_on,
            "tool_execution_end": self._tool_ends,
            "turn_start": self._turn_starts,
            "retry_start": self._retry,
            "session_compact": self._compacted,
            "model_select": self._model,
        }

    def take(self, event: hooks.ObserveEvent) -> None:
        """Show one event."""
        taker = self._takers.get(event.hook)
        if taker is not None:
            taker(event)

    def _more(self, event: hooks.MessageUpdate) -> None:
        kind, text = event.delta.get("type"), event.delta.get("text", "")
        if kind == "text":
            self._sink.text(text)
        elif kind == "thinking" and self._thinking:
            self._sink.thinking(text)

    def _said(self, event: hooks.MessageEnd) -> None:
        role = event.message.get("role")
        if role == "tool":
            self._answered(event.message)
        if role != "assistant":
            return
        self._sink.end_text()
        parts = event.message.get("content", ())
        for part in parts:
            if part["type"] == "tool_call":
                arguments = describe_arguments(part.get("arguments", {}))
                self._asked[part["id"]] = _Running(part["name"].replace("__", "."), arguments)
        if self._asked:
            self._sink.aside("".join(part["text"] for part in parts if part["type"] == "text"))

    def _answered(self, message: Mapping[str, Any]) -> None:
        """Tell of a call that did not run now: it was refused, can't be run as it is, or has run before."""
        if message["call"] in self._ended:
            return
        running = self._asked.get(message["call"]) or _Running(message["tool"].replace("__", "."), "")
        metadata = message.get("metadata", {})
        otherwise = "told again" if metadata.get("replayed") else "not run"
        outcome = _NOT_RUN.get(metadata.get("code", ""), otherwise)
        self._tool_line(running, f"{outcome}: {_beginning(message.get('content', ''))}")

    def _tool_starts(self, event: hooks.ToolExecutionStart) -> None:
        running = self._running[event.id] = _Running(event.tool, describe_arguments(event.arguments))
        self._sink.progress(running.label)

    def _tool_goes_on(self, event: hooks.ToolExecutionUpdate) -> None:
        parts = [event.tool]
        if event.current is not None:
            parts.append(how_far(event.current, event.total))
        if event.message:
            parts.append(one_line(event.message))
        self._sink.progress(" ".join(parts))

    def _tool_ends(self, event: hooks.ToolExecutionEnd) -> None:
        running = self._running.pop(event.id, None) or _Running(event.tool, "")
        self._ended.add(event.id)
        outcome = f"failed: {_beginning(event.content)}" if event.is_error else "ok"
        self._tool_line(running, f"{outcome}, {describe_duration(event.ms / 1000)}")

    def _turn_starts(self, event: hooks.TurnStart) -> None:  # noqa: ARG002  all that matters is that it comes
        self._asked.clear()
        self._running.clear()
        self._ended.clear()

    def _tool_line(self, running: _Running, outcome: str) -> None:
        self._sink.progress("")
        label = fitted(f"* {running.label}")
        joined = f"{label}: {outcome}"
        told = paragraph(fitted(outcome, _LONGEST_OUTCOME), "  ")
        self._sink.line(joined if fitted(joined) == joined else f"{label}\n{told}")

    def _retry(self, event: hooks.RetryStart) -> None:
        self._sink.end_text()
        kind = str(event.error.get("kind") or "failed").replace("_", " ")
        why = one_line(str(event.error.get("message", "")))
        self._sink.line(f"! {kind}, again in {describe_duration(event.delay)} (try {event.attempt + 1}): {why}")

    def _compacted(self, event: hooks.SessionCompact) -> None:
        by = f" by `{event.plugin}`" if event.plugin else ""
        self._sink.line(f"! the conversation got long, and was made shorter{by}")

    def _model(self, event: hooks.ModelSelect) -> None:
        if event.source == "fallback":
            self._sink.line(f"! {event.previous} can't answer; going on with {event.model}")


def _beginning(content: Any) -> str:
    """The first line of a result."""
    if isinstance(content, (list, tuple)):
        content = next((part.get("text", "") for part in content if isinstance(part, Mapping)), "")
    if isinstance(content, Mapping):
        content = content.get("message") or content.get("error") or content
    lines = str(content).strip().splitlines()
    return one_line(lines[0]) if lines else "it said nothing"
