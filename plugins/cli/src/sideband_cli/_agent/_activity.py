"""Show the progress of a run: streamed text, a line for each tool call, retries and compactions."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .._arguments._grants import for_skill
from .._terminal._columns import fitted, terminal_width
from .._terminal._effect_text import effect_line
from .._terminal._progressbar import format_progress
from .._terminal._tables import paragraph
from .._terminal._words import describe_arguments, describe_duration, one_line

if TYPE_CHECKING:
    from sideband import hooks

_MAX_OUTCOME_LENGTH = 400
_MAX_DETAIL_LINES = 40
_MAX_DETAIL_LENGTH = 4_000
_MAX_FOLDED = 20
_MARGIN = 5  # for the mark, the indentation of the second line, and the last column
_QUIET = ("message_update", "message_end")  # the events that are shown if only the answers are wanted
_NOT_RUN = {
    "effect.unknown": "outcome unknown",
    "tool.denied": "denied",
    "tool.rejected": "rejected",
    "tool.stopped": "stopped",
}


class Sink(Protocol):
    """The output of an ``Activity``. The text that it receives is not rendered yet."""

    def text(self, part: str) -> None:
        """Show a part of the model's text."""

    def thinking(self, part: str) -> None:
        """Show a part of the model's thinking."""

    def end_text(self) -> None:
        """End the current text; later parts begin on a new line."""

    def aside(self, text: str) -> None:
        """Show the text of a message that also calls tools, which is not the final answer."""

    def line(self, text: str) -> None:
        """Show a status message; all its lines but the first are indented."""

    def progress(self, text: str) -> None:
        """Replace the current progress message; an empty string removes it."""


class _Running(NamedTuple):
    tool: str
    arguments: str
    values: Mapping[str, Any] = MappingProxyType({})

    @property
    def label(self) -> str:
        return f"{one_line(self.tool)} {self.arguments}".rstrip()


class _Status(NamedTuple):
    """The newest amount of a running tool, and its newest message or line of output."""

    amount: str = ""
    line: str = ""


class Activity:
    """Turns the events of an agent into output for a person.

    Args:
        sink: the output.
        thinking: whether to show the model's thinking.
        quiet: whether to show only the model's text.
        verbose: whether to show thinking, the arguments and results of tools, effects and routes.
    """

    def __init__(self, sink: Sink, *, thinking: bool = False, quiet: bool = False, verbose: bool = False) -> None:
        self._sink = sink
        self._thinking = thinking or verbose
        self._quiet = quiet
        self._verbose = verbose
        self._asked: dict[str, _Running] = {}
        self._running: dict[str, _Running] = {}
        self._statuses: dict[str, _Status] = {}
        self._ended: set[str] = set()
        self._folded: deque[tuple[str, list[str]]] = deque(maxlen=_MAX_FOLDED)
        self._hints: set[str] = set()
        self._handlers: dict[str, Callable[[Any], None]] = {
            "message_update": self._on_message_update,
            "message_end": self._on_message_end,
            "tool_execution_start": self._on_tool_start,
            "tool_execution_update": self._on_tool_update,
            "tool_progress": self._on_tool_progress,
            "tool_execution_end": self._on_tool_end,
            "turn_start": self._on_turn_start,
            "agent_end": self._on_agent_end,
            "retry_start": self._on_retry,
            "compaction_start": self._on_compaction_start,
            "session_compact": self._on_compaction,
            "compaction_end": self._on_compaction_end,
            "subagent_start": self._on_child_start,
            "model_select": self._on_model_select,
        }
        if verbose:
            self._handlers["effect"] = self._on_effect
            self._handlers["route_end"] = self._on_route_end

    @property
    def awaited(self) -> str:
        """What the run waits for: the model, or tools."""
        tools = sorted({one_line(one.tool) for one in self._running.values()})
        return f"{tools[0]} and {len(tools) - 1} more" if len(tools) > 1 else "".join(tools) or "the model"

    def take(self, event: hooks.ObserveEvent) -> None:
        """Show one event."""
        handler = self._handlers.get(event.hook)
        if handler is not None and (not self._quiet or event.hook in _QUIET):
            handler(event)

    def unfold(self) -> bool:
        """Show the arguments and the result of the last tool call that was shown in one line. Return whether one was.

        The next time, it shows the one before it.
        """
        if not self._folded:
            return False
        label, details = self._folded.pop()
        self._sink.line("\n".join([label, *details]))
        return True

    def take_hints(self, event: hooks.ObserveEvent) -> None:
        """Show the hint of an event, if it has one, and nothing else."""
        message: Mapping[str, Any] = getattr(event, "message", {}) if event.hook == "message_end" else {}
        if message.get("role") == "tool":
            self._show_hint(message)

    def _on_message_update(self, event: hooks.MessageUpdate) -> None:
        kind, text = event.delta.get("type"), event.delta.get("text", "")
        if kind == "text":
            self._sink.text(text)
        elif kind == "thinking" and self._thinking:
            self._sink.thinking(text)

    def _on_message_end(self, event: hooks.MessageEnd) -> None:
        role = event.message.get("role")
        if role == "tool":
            if not self._quiet:
                self._on_tool_message(event.message)
            self._show_hint(event.message)
        if role != "assistant":
            return
        self._sink.end_text()
        if self._quiet:
            return
        parts = event.message.get("content", ())
        for part in parts:
            if part["type"] == "tool_call":
                arguments = describe_arguments(part.get("arguments", {}))
                self._asked[part["id"]] = _Running(part["name"].replace("__", "."), arguments)
        if self._asked:
            self._sink.aside("".join(part["text"] for part in parts if part["type"] == "text"))

    def _on_tool_message(self, message: Mapping[str, Any]) -> None:
        """Show the result of a tool call that was denied, rejected or replayed, and therefore not executed."""
        if message["call"] in self._ended:
            return
        running = self._asked.get(message["call"]) or _Running(message["tool"].replace("__", "."), "")
        metadata = message.get("metadata", {})
        default = "replayed" if metadata.get("replayed") else "not run"
        outcome = _NOT_RUN.get(metadata.get("code", ""), default)
        self._tool_line(running, f"{outcome}: {_first_line(message.get('content', ''))}")

    def _show_hint(self, message: Mapping[str, Any]) -> None:
        """Show the hint of a failed tool call; if ``quiet``, only that of a denied one."""
        metadata = message.get("metadata", {})
        if not message.get("is_error") or (self._quiet and not metadata.get("denied")):
            return
        hint = for_skill(metadata.get("hint", ""), message["tool"].rpartition("__")[0])
        if hint and hint not in self._hints:  # many calls may fail for one reason
            self._hints.add(hint)
            self._sink.line(f"hint: {hint}")  # on one line, however long, so that it can be copied

    def _on_tool_start(self, event: hooks.ToolExecutionStart) -> None:
        running = _Running(event.tool, describe_arguments(event.arguments), event.arguments)
        self._running[event.id] = running
        self._sink.progress(running.label)

    def _on_tool_update(self, event: hooks.ToolExecutionUpdate) -> None:
        last = self._statuses.get(event.id, _Status())
        amount = last.amount
        if event.current is not None:
            amount = one_line(format_progress(event.current, event.total, event.unit))
        self._show_status(event.id, event.tool, _Status(amount, one_line(event.message or "") or last.line))

    def _on_tool_progress(self, event: hooks.ToolProgress) -> None:
        """Show the last line of new output. The whole output is part of the result."""
        line = next((one for one in reversed((event.text or "").splitlines()) if one.strip()), "")
        if line:
            amount = self._statuses.get(event.call, _Status()).amount
            self._show_status(event.call, event.tool, _Status(amount, one_line(line)))

    def _show_status(self, call: str, tool: str, status: _Status) -> None:
        self._statuses[call] = status
        self._sink.progress(" ".join(filter(None, [one_line(tool), *status])))

    def _on_tool_end(self, event: hooks.ToolExecutionEnd) -> None:
        running = self._running.pop(event.id, None) or _Running(event.tool, "")
        self._statuses.pop(event.id, None)
        self._ended.add(event.id)
        text = _first_line(event.content)
        if event.hint:
            text = text.removesuffix(f". {one_line(event.hint)}")  # shown below, once
        outcome = f"failed: {text}" if event.is_error else "ok"
        details = _details(running.values, event.content) if self._verbose else []
        if not self._verbose:
            self._folded.append((f"* {running.label}", _details(running.values, event.content)))
        self._tool_line(running, f"{outcome}, {describe_duration(event.ms / 1000)}", details)

    def _on_turn_start(self, event: hooks.TurnStart) -> None:  # noqa: ARG002  the signature of all handlers
        self._asked.clear()
        self._running.clear()
        self._statuses.clear()
        self._ended.clear()

    def _on_agent_end(self, event: hooks.AgentEnd) -> None:  # noqa: ARG002  the signature of all handlers
        """Show the tool calls that the end of the run has stopped."""
        for running in self._running.values():
            self._tool_line(running, "stopped, may have been executed in part")
        self._running.clear()
        self._hints.clear()
        self._sink.progress("")

    def _tool_line(self, running: _Running, outcome: str, details: Sequence[str] = ()) -> None:
        self._sink.progress("")
        label = fitted(f"* {running.label}", terminal_width() - _MARGIN)
        joined = f"{label}: {outcome}"
        below = paragraph(fitted(outcome, _MAX_OUTCOME_LENGTH), width=terminal_width() - _MARGIN)
        line = joined if fitted(joined, terminal_width() - _MARGIN) == joined else f"{label}\n{below}"
        self._sink.line("\n".join([line, *details]))

    def _on_effect(self, event: hooks.Effect) -> None:
        self._sink.line(effect_line(event.effect, event.op, event.status, event.ms))

    def _on_route_end(self, event: hooks.RouteEnd) -> None:
        outcome = "handled" if event.handled else "not handled"
        route = f"route {one_line(event.name)} of {one_line(event.plugin)}"
        self._sink.line(f"* {route}: {outcome}, {one_line(event.reason)}, {describe_duration(event.ms / 1000)}")

    def _on_retry(self, event: hooks.RetryStart) -> None:
        self._sink.end_text()
        kind = one_line(str(event.error.get("kind") or "failed")).replace("_", " ")
        reason = one_line(str(event.error.get("message", "")))
        delay = describe_duration(event.delay)
        self._sink.line(f"! {kind}, retrying in {delay} (attempt {event.attempt + 1}): {reason}")

    def _on_compaction_start(self, event: hooks.CompactionStart) -> None:
        self._sink.progress(f"compacting about {event.tokens:,} tokens")

    def _on_compaction_end(self, event: hooks.CompactionEnd) -> None:  # noqa: ARG002  the signature of all handlers
        self._sink.progress("")

    def _on_child_start(self, event: hooks.SubagentStart) -> None:
        self._sink.progress(f"child agent: {one_line(event.task)}")

    def _on_compaction(self, event: hooks.SessionCompact) -> None:
        by = f" by `{event.plugin}`" if event.plugin else ""
        self._sink.line(f"! the conversation was too long and has been compacted{by}")

    def _on_model_select(self, event: hooks.ModelSelect) -> None:
        if event.source == "fallback":
            self._sink.line(
                f"! {one_line(event.previous or '')} is unavailable; continuing with {one_line(event.model)}"
            )


def _details(arguments: Mapping[str, Any], content: Any) -> list[str]:
    """Return the arguments and the result of a tool call, which the line about it shows only in part."""
    values = [f"{name} = {json.dumps(value, ensure_ascii=False, default=str)}" for name, value in arguments.items()]
    if isinstance(content, (list, tuple)):
        content = "\n".join(part.get("text", "") for part in content if isinstance(part, Mapping))
    result = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
    return [*(_cut(value) for value in values), "result:", *(f"  {line}" for line in _cut(result).split("\n"))]


def _cut(text: str) -> str:
    """Cut a long text after some lines or characters, and report how much is hidden."""
    kept = "\n".join(text.rstrip().split("\n")[:_MAX_DETAIL_LINES])[:_MAX_DETAIL_LENGTH]
    hidden = len(text.rstrip()) - len(kept)
    return f"{kept}\n(… {hidden:,} characters omitted …)" if hidden else kept


def _first_line(content: Any) -> str:
    """Return the first line of a tool result; of a traceback of Python, the line that names the exception."""
    if isinstance(content, (list, tuple)):
        content = next((part.get("text", "") for part in content if isinstance(part, Mapping)), "")
    if isinstance(content, Mapping):
        content = content.get("message") or content.get("error") or content
    lines = str(content).strip().splitlines()
    if lines and lines[0].startswith("Traceback "):
        lines = [line for line in lines[1:] if not line.startswith((" ", "["))] or lines
    return one_line(lines[0]) if lines else "no output"
