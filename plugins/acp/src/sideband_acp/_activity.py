"""The events of an agent as updates for the client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    CurrentModeUpdate,
    ToolCallProgress,
    ToolCallStart,
    ToolCallStatus,
)
from attrs import define, field
from sideband import hooks
from sideband.ops import Origin
from sideband.rendering import Renderer, render

from ._changes import Changes
from ._text import block, shown
from ._tool_calls import Content, DescribedCall, described, result_content, result_text
from ._updates import Update

_LONGEST_OUTPUT = 8_000
_OF_REPORTS = "progress"


@define
class _Call:
    """A tool call in progress.

    Attributes:
        described: what the client knows of it.
        status: whether it has begun.
        difference: what it changes in a file.
        output: the end of its output.
        report: its last report of progress.
    """

    described: DescribedCall
    status: ToolCallStatus = "pending"
    difference: Content = field(factory=list)
    output: str = ""
    report: str = ""


@define(eq=False)
class AcpActivity:
    """Turns the events of one agent into updates.

    Args:
        put: takes each update.
        changes: finds out what tool calls change.
        on_tasks: called when the tool `todo` has ended.
        on_turn: called when a turn has ended.
    """

    put: Callable[[Update], None]
    changes: Changes
    on_tasks: Callable[[], None]
    on_turn: Callable[[], None]
    own_mode: str | None = field(default=None, init=False)
    """The mode that the client has selected itself, so that it needs no report."""

    _run: str = field(default="", init=False)
    _message: int = field(default=0, init=False)
    _said: Renderer = field(factory=lambda: Renderer(prose=True), init=False, repr=False)
    _thought: Renderer = field(factory=lambda: Renderer(prose=True), init=False, repr=False)
    _asked: list[str] = field(factory=list, init=False, repr=False)
    _calls: dict[str, _Call] = field(factory=dict, init=False, repr=False)

    def take(self, event: hooks.ObserveEvent) -> None:
        """Report one event."""
        match event:
            case hooks.AgentStart():
                self._run = event.run
            case hooks.MessageStart():
                self._begin_message()
            case hooks.MessageUpdate():
                self._on_part(event.delta)
            case hooks.MessageEnd():
                self._on_message(event.message)
            case hooks.ToolExecutionStart():
                self._on_start(event)
            case hooks.ToolExecutionUpdate():
                self._on_report(event)
            case hooks.ToolProgress() if event.text is not None and event.stream != _OF_REPORTS:
                self._on_output(event.call, event.text)
            case hooks.TurnEnd():
                self.on_turn()
            case hooks.AgentEnd():
                self._on_end()
            case _:
                self._on_session_event(event)

    def _on_session_event(self, event: hooks.ObserveEvent) -> None:
        match event:
            case hooks.ApprovalModeSelect() if event.mode != self.own_mode:
                self.put(CurrentModeUpdate(session_update="current_mode_update", current_mode_id=event.mode))
            case hooks.RetryStart():
                reason = str(event.error.get("message", "the model call failed"))
                self._note(f"{reason}; retrying in {event.delay:.0f} s")
            case hooks.SessionCompact():
                self._note("the conversation was too long and has been compacted")
            case hooks.ModelSelect() if event.source == "fallback":
                self._note(f"{event.previous} is unavailable; continuing with {event.model}")

    def call_of(self, origin: Origin) -> str | None:
        """Return the id of the tool call that causes a question, or ``None`` if none does."""
        # A child agent works for a call, whose key is `session:run:step`.
        run, step = origin.parent.rsplit(":", 2)[1:] if origin.parent else (origin.run, origin.step or "")
        index = step.rpartition(".")[2] if "." in step else ""
        if run != self._run or not index.isdigit() or int(index) >= len(self._asked):
            return None
        return self._asked[int(index)]

    def _begin_message(self) -> None:
        self._message += 1
        self._said, self._thought = Renderer(prose=True), Renderer(prose=True)

    def _on_part(self, delta: Mapping[str, Any]) -> None:
        kind, text = delta.get("type"), delta.get("text", "")
        if kind == "text" and text:
            self.say(self._said.feed(text))
        elif kind == "thinking" and text:
            self._think(self._thought.feed(text))

    def say(self, text: str) -> None:
        """Show a text as the agent's own."""
        name = f"{self._run}-{self._message}"
        self.put(AgentMessageChunk(session_update="agent_message_chunk", content=block(text), message_id=name))

    def _think(self, text: str) -> None:
        name = f"{self._run}-{self._message}"
        self.put(AgentThoughtChunk(session_update="agent_thought_chunk", content=block(text), message_id=name))

    def _note(self, text: str) -> None:
        self._begin_message()
        self._think(render(f"[{text}]", prose=True))

    def _on_message(self, message: Mapping[str, Any]) -> None:
        if message.get("role") == "tool":
            self._on_result(message)
        elif message.get("role") == "assistant":
            calls = [part for part in message.get("content", ()) if part["type"] == "tool_call"]
            self._asked = [part["id"] for part in calls]
            for part in calls:
                self._on_asked(described(part["id"], part["name"], part.get("arguments", {}), self.changes))

    def _on_asked(self, call: DescribedCall) -> None:
        self._calls[call.id] = _Call(call)
        self.put(
            ToolCallStart(
                session_update="tool_call",
                tool_call_id=call.id,
                title=call.title,
                kind=call.kind,
                status="pending",
                locations=call.locations,
                raw_input=call.arguments,
            )
        )

    def _on_start(self, event: hooks.ToolExecutionStart) -> None:
        call = described(event.id, event.tool, event.arguments, self.changes)
        difference: Content = [*self.changes.of_call(call.tool, event.arguments)]
        self._calls[event.id] = _Call(call, "in_progress", difference)
        self.describe(event.id)

    def describe(self, name: str) -> None:
        """Show a call as it is now, instead of the question about it."""
        if (one := self._calls.get(name)) is None:
            return
        call = one.described
        self.put(
            ToolCallProgress(
                session_update="tool_call_update",
                tool_call_id=name,
                title=call.title,
                kind=call.kind,
                status=one.status,
                content=[*one.difference, *self._progress(one)],
                locations=call.locations,
                raw_input=call.arguments,
            )
        )

    def _on_report(self, event: hooks.ToolExecutionUpdate) -> None:
        if (call := self._calls.get(event.id)) is None:
            return
        amount = "" if event.current is None else f"{event.current:g}"
        amount += f" of {event.total:g}" if amount and event.total is not None else ""
        call.report = " ".join(filter(None, [amount, event.unit if amount else "", event.message]))
        self._show_progress(event.id, call)

    def _on_output(self, name: str, text: str) -> None:
        if (call := self._calls.get(name)) is not None:
            call.output = (call.output + text)[-_LONGEST_OUTPUT:]
            self._show_progress(name, call)

    def _show_progress(self, name: str, call: _Call) -> None:
        content = [*call.difference, *self._progress(call)]
        self.put(ToolCallProgress(session_update="tool_call_update", tool_call_id=name, content=content))

    def _progress(self, call: _Call) -> Content:
        return [shown(one) for one in (call.output, call.report) if one]

    def _on_result(self, message: Mapping[str, Any]) -> None:
        """Report the result of a call, whether it ran or not."""
        name, parts = message["call"], message.get("content", ())
        call = self._calls.pop(name, None)
        failed = bool(message.get("is_error"))
        difference = call.difference if call is not None and not failed else []
        self.put(
            ToolCallProgress(
                session_update="tool_call_update",
                tool_call_id=name,
                status="failed" if failed else "completed",
                content=difference or result_content(parts),
                raw_output={"text": result_text(parts)},
            )
        )
        if call is not None and call.described.tool == "todo" and not failed:
            self.on_tasks()

    def _on_end(self) -> None:
        """Report the calls that the end of the run has stopped."""
        for name in self._calls:
            content: Content = [shown("stopped; it may have been executed in part")]
            self.put(
                ToolCallProgress(session_update="tool_call_update", tool_call_id=name, status="failed", content=content)
            )
        self._calls.clear()
        self.on_turn()
