"""The metrics."""

from __future__ import annotations

from opentelemetry.metrics import Histogram, Meter

from . import _conventions as conventions
from ._conventions import Attributes, plain

_MOST_VALUES = 200
_OTHER = "other"


class Instruments:
    """The instruments, and the values of their attributes, which are bounded: skills and models choose some of them.

    Args:
        meter: makes the instruments.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._values: dict[str, set[str]] = {}
        self.operations = self._durations(conventions.OPERATION_DURATION, "Duration of model calls.")
        self.runs = self._durations(conventions.RUN_DURATION, "Duration of runs.")
        self.turns = self._durations(conventions.TURN_DURATION, "Duration of turns.")
        self.tools = self._durations(conventions.TOOL_DURATION, "Duration of tool calls.")
        self.effects = self._durations(conventions.EFFECT_DURATION, "Duration of effects.")
        self.approvals = self._durations(conventions.APPROVAL_DURATION, "Time until a request for approval ended.")
        self.worker_starts = self._durations(conventions.WORKER_START_DURATION, "Duration of starts of workers.")
        self.tokens = meter.create_histogram(
            conventions.TOKEN_USAGE,
            "{token}",
            "Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=conventions.TOKEN_BUCKETS,
        )
        self.cost = meter.create_counter(conventions.COST, "{USD}", "Cost of model calls, where prices are known.")
        self.active_runs = meter.create_up_down_counter(conventions.RUNS_ACTIVE, "{run}", "Runs in progress.")
        self.active_workers = meter.create_up_down_counter(conventions.WORKERS_ACTIVE, "{worker}", "Running workers.")
        self.ended_workers = meter.create_counter(conventions.WORKERS_ENDED, "{worker}", "Workers that have ended.")

    def bounded(self, found: Attributes) -> Attributes:
        """Return attributes of a metric. The values of each that are new after the first 200 become ``other``."""
        return {name: self._bounded(name, value) if isinstance(value, str) else value for name, value in found.items()}

    def _bounded(self, name: str, value: str) -> str:
        values = self._values.setdefault(name, set())
        shown = plain(value)
        if shown not in values and len(values) >= _MOST_VALUES:
            return _OTHER
        values.add(shown)
        return shown

    def _durations(self, name: str, description: str) -> Histogram:
        return self._meter.create_histogram(
            name, "s", description, explicit_bucket_boundaries_advisory=conventions.DURATION_BUCKETS
        )
