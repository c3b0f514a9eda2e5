"""Turn events into spans and metrics.

A span is written when its work has ended. What is still running is known by its id only, and in tables of bounded size:
runs with their turns, and child agents with the spans that caused them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TypeVar

from attrs import define, field
from sideband.hooks import (
    AgentEnd,
    AgentError,
    AgentStart,
    ApprovalEnd,
    Effect,
    SubagentEnd,
    SubagentStart,
    TraceParent,
    TurnStart,
    WorkerEnd,
    WorkerStart,
)
from sideband.ops import Origin

from . import _conventions as conventions
from ._conventions import Attributes, known
from ._identity import SpanKey, new_span, new_trace, span_of, trace_of
from ._instruments import Instruments
from ._spans import SpanWriter, Timing

_MOST_OPEN = 10_000
_NAME_OF_MODEL_CALL = conventions.OPERATION, conventions.REQUEST_MODEL
_LABELS_OF_RUN = "sideband.run.reason", "sideband.run.source"
_CANCELLED = "cancelled"
_OF_RUN = conventions.PROVIDER, conventions.REQUEST_MODEL
_Value = TypeVar("_Value")


@define(eq=False)
class _OpenTurn:
    """A turn in progress."""

    span: int
    index: int
    start: int


@define(eq=False)
class _OpenRun:
    """A run in progress.

    Attributes:
        key: the ids of its span.
        parent: the id of the span that caused it, if there is one.
        session: the session of its agent.
        attributes: those of its span.
        start: when it began, in nanoseconds since 1970.
        latest: when its last effect ended.
        turn: the turn in progress, if there is one.
        error: the code of the error with which it fails, if it does.
    """

    key: SpanKey
    parent: int | None
    session: str | None
    attributes: Attributes
    start: int = field(factory=time.time_ns)
    latest: int = 0
    turn: _OpenTurn | None = None
    error: str | None = None

    @property
    def current(self) -> int:
        """The id of the span of the turn in progress, or else of the run."""
        return self.key.span if self.turn is None else self.turn.span


@define(eq=False)
class Telemetry:
    """Turns the events of a host into spans and metrics.

    Args:
        spans: writes spans.
        instruments: the metrics.
        outer: the span that has started the host, if its environment names one.
    """

    _spans: SpanWriter
    _metrics: Instruments
    _outer: SpanKey | None = None
    _runs: dict[str, _OpenRun] = field(factory=dict, init=False, repr=False)
    _of_sessions: dict[str, str] = field(factory=dict, init=False, repr=False)
    _children: dict[str, SpanKey] = field(factory=dict, init=False, repr=False)

    def begin_run(self, event: AgentStart, session: str | None) -> None:
        """Remember a run. ``session`` is that of its agent."""
        # A session has one run at a time. The end of one that was cancelled is not observed.
        for name in {event.run, self._of_sessions.get(session or "", event.run)}:
            self._end_cancelled(name)
        cause = self._children.get(session or "", self._outer)
        trace = trace_of(event.run) if cause is None else cause.trace
        attributes = conventions.of_run(event, session)
        run = _OpenRun(SpanKey(trace, new_span()), None if cause is None else cause.span, session, attributes)
        if session is not None:
            _keep(self._of_sessions, session, event.run)
        self._metrics.active_runs.add(1 - _keep(self._runs, event.run, run))

    def fail_run(self, event: AgentError) -> None:
        """Remember why a run fails."""
        if (run := self._runs.get(event.run)) is not None:
            run.error = conventions.code_of(event.error)

    def end_run(self, event: AgentEnd) -> None:
        """Write a run."""
        self._end_run(event.run, event.reason, time.time_ns())

    def close(self) -> None:
        """Write the runs whose end was not observed."""
        for name in [*self._runs]:
            self._end_cancelled(name)

    def _end_cancelled(self, name: str) -> None:
        if (run := self._runs.get(name)) is not None:
            begun = run.start if run.turn is None else run.turn.start
            self._end_run(name, _CANCELLED, max(begun, run.latest))

    def _end_run(self, name: str, reason: str, end: int) -> None:
        if (run := self._runs.pop(name, None)) is None:
            return
        self._of_sessions.pop(run.session or "", None)
        self._metrics.active_runs.add(-1)
        self._end_turn(run, end)
        timing = Timing(run.start, end)
        error = run.error if reason == "error" else None
        ended = known({"sideband.run.reason": reason, conventions.ERROR_TYPE: error})
        self._spans.write("invoke_agent", run.key, run.parent, timing, {**run.attributes, **ended}, error=error)
        labels = {**run.attributes, **ended}
        self._metrics.runs.record(
            timing.seconds, self._metrics.bounded({name: labels[name] for name in _LABELS_OF_RUN if name in labels})
        )

    def begin_turn(self, event: TurnStart) -> None:
        """Remember a turn, and write the one before, which has ended."""
        if (run := self._runs.get(event.run)) is not None:
            self._end_turn(run, time.time_ns())
            run.turn = _OpenTurn(new_span(), event.index, time.time_ns())

    def begin_child(self, event: SubagentStart) -> None:
        """Remember which span has caused a child agent."""
        run = self._runs.get(event.run)
        trace = self._trace(event.run, None) if run is None else run.key.trace
        parent = span_of(event.call) if event.call else None if run is None else run.current
        if parent is not None:
            _keep(self._children, event.session, SpanKey(trace, parent))

    def end_child(self, event: SubagentEnd) -> None:
        """Forget a child agent."""
        self._children.pop(event.session, None)

    def effect(self, event: Effect) -> None:
        """Write an effect: a tool call, a model call, or another one."""
        key = SpanKey(self._trace_of(event.origin, event.call), _span_of_effect(event))
        parent = self._parent(event, is_tool=event.op == conventions.TOOL_CALL)
        timing = Timing.until_now(event.ms)
        if (run := self._runs.get(event.origin.run or "")) is not None:
            run.latest = timing.end
        error = conventions.error_type(event)
        attributes = conventions.of_effect(event)
        if event.op in conventions.MODEL_CALLS:
            found = conventions.of_model_call(event)
            name = " ".join(str(found[one]) for one in _NAME_OF_MODEL_CALL if one in found)
            self._count_model_call(event, found, timing, error)
            self._describe_run(event, found)
        elif event.op == conventions.TOOL_CALL:
            found = conventions.of_tool_call(event)
            name = f"execute_tool {conventions.tool_of(event)}"
            labels = known({conventions.TOOL: conventions.tool_of(event), conventions.ERROR_TYPE: error})
            self._metrics.tools.record(timing.seconds, self._metrics.bounded(labels))
        else:
            found, name = conventions.of_receiver(event), conventions.op_of(event)
        is_client = event.egress and event.op != conventions.TOOL_CALL
        self._spans.write(
            name, key, parent, timing, {**attributes, **found}, error=error or _failed(event), is_client=is_client
        )
        names = conventions.OP, conventions.STATUS, conventions.LEVEL
        labels = {name: attributes[name] for name in names if name in attributes}
        self._metrics.effects.record(timing.seconds, self._metrics.bounded(labels))

    def trace_parent(self, event: TraceParent) -> str:
        """Return the trace context of an effect that is running."""
        return self._spans.trace_parent(SpanKey(self._trace_of(event.origin, event.call), span_of(event.effect)))

    def end_approval(self, event: ApprovalEnd) -> None:
        """Write a request for approval."""
        timing = Timing.until_now(event.ms)
        key = SpanKey(self._trace_of(event.origin, event.request), new_span())
        attributes = conventions.of_approval(event)
        self._spans.write("approval", key, self._current(event.origin), timing, attributes)
        labels = {conventions.ABOUT: attributes[conventions.ABOUT], conventions.VERDICT: event.verdict}
        self._metrics.approvals.record(timing.seconds, self._metrics.bounded(labels))

    def begin_worker(self, event: WorkerStart) -> None:
        """Count a worker, and write its start."""
        labels = self._metrics.bounded({conventions.ISOLATION: event.isolation})
        self._metrics.active_workers.add(1, labels)
        self._metrics.worker_starts.record(event.ms / 1000, labels)

    def end_worker(self, event: WorkerEnd) -> None:
        """Write a worker, which serves many calls and so has a trace of its own."""
        attributes = conventions.of_worker(event)
        timing = Timing.until_now(event.ms)
        self._spans.write(
            "worker", SpanKey(new_trace(), new_span()), None, timing, attributes, error=event.code or None
        )
        self._metrics.active_workers.add(-1, self._metrics.bounded({conventions.ISOLATION: event.isolation}))
        names = conventions.ISOLATION, conventions.STATUS, conventions.ERROR_TYPE
        labels = {name: attributes[name] for name in names if name in attributes}
        self._metrics.ended_workers.add(1, self._metrics.bounded(labels))

    def _end_turn(self, run: _OpenRun, end: int) -> None:
        if (turn := run.turn) is None:
            return
        run.turn = None
        timing = Timing(turn.start, end)
        attributes: Attributes = {"sideband.turn.index": turn.index}
        self._spans.write("turn", SpanKey(run.key.trace, turn.span), run.key.span, timing, attributes)
        self._metrics.turns.record(timing.seconds)

    def _count_model_call(self, event: Effect, found: Attributes, timing: Timing, error: str | None) -> None:
        names = conventions.OPERATION, conventions.PROVIDER, conventions.REQUEST_MODEL, conventions.RESPONSE_MODEL
        labels = self._metrics.bounded({name: found[name] for name in names if name in found})
        usage = event.result.get("usage")
        failed = known({conventions.ERROR_TYPE: error})
        self._metrics.operations.record(timing.seconds, {**labels, **self._metrics.bounded(failed)})
        if not isinstance(usage, Mapping):
            return
        tokens = {"input": conventions.input_tokens(usage), "output": conventions.count(usage, "output")}
        for kind, number in tokens.items():
            self._metrics.tokens.record(number, {**labels, conventions.TOKEN_TYPE: kind})
        if cost := conventions.cost_of(usage):
            self._metrics.cost.add(cost, labels)

    def _describe_run(self, event: Effect, found: Attributes) -> None:
        """Give a run the provider and the model of its last model call, unless a tool made the call."""
        if (run := self._runs.get(event.origin.run or "")) is not None and _tool_call(event.origin) is None:
            run.attributes.update({name: found[name] for name in _OF_RUN if name in found})

    def _parent(self, event: Effect, *, is_tool: bool) -> int | None:
        """Return the id of the span that caused an effect, if there is one."""
        if event.within is not None:
            return span_of(event.within)
        if not is_tool and (call := _tool_call(event.origin)) is not None:
            return span_of(call)
        return self._current(event.origin)

    def _current(self, origin: Origin) -> int | None:
        """Return the id of the span of the turn in progress, or else of what started the host, if there is one."""
        if (run := self._runs.get(origin.run or "")) is not None:
            return run.current
        return None if self._outer is None else self._outer.span

    def _trace_of(self, origin: Origin, call: str) -> int:
        if (run := self._runs.get(origin.run or "")) is not None:
            return run.key.trace
        return self._trace(origin.run or call, origin.session)

    def _trace(self, name: str, session: str | None) -> int:
        cause = self._children.get(session or "", self._outer)
        return trace_of(name) if cause is None else cause.trace


def _span_of_effect(event: Effect) -> int:
    """Return the id of the span of an effect. That of a tool call is known to its child effects by its step."""
    call = _tool_call(event.origin) if event.op == conventions.TOOL_CALL else None
    # A call that waits for an approval runs again later, as another effect.
    is_to_run = call is not None and conventions.error_type(event) != conventions.APPROVAL_NEEDED
    return span_of(call if is_to_run and call is not None else event.effect)


def _tool_call(origin: Origin) -> str | None:
    """Return the name of the tool call that an effect belongs to, if there is one."""
    is_call = origin.session is not None and origin.run is not None and "." in (origin.step or "")
    return f"{origin.session}:{origin.run}:{origin.step}" if is_call else None


def _failed(event: Effect) -> str | None:
    return event.status if event.status in ("failed", "denied", "unknown") else None


def _keep(table: dict[str, _Value], key: str, value: _Value) -> int:
    """Keep a value among the newest, and return how many others are forgotten for it.

    What is never ended, because its end was lost, must not fill the memory.
    """
    before = len(table)
    table.pop(key, None)
    table[key] = value
    if len(table) > _MOST_OPEN:
        del table[next(iter(table))]
    return before + 1 - len(table)
