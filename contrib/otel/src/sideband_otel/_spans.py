"""Write spans that have ended, with ids and times that are known by then."""

from __future__ import annotations

import time

from attrs import define, field, frozen
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision, Sampler
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    set_span_in_context,
)

from ._conventions import Attributes, plain
from ._identity import SpanKey

_NANOSECONDS = 1_000_000


class GivenIds(IdGenerator):
    """Returns the ids of the span that is written next."""

    def __init__(self) -> None:
        self.key = SpanKey(1, 1)

    def generate_span_id(self) -> int:
        """Return the id of the span."""
        return self.key.span

    def generate_trace_id(self) -> int:
        """Return the id of its trace."""
        return self.key.trace


@frozen
class Timing:
    """The time of a span.

    Attributes:
        start, end: the times in nanoseconds since 1970.
    """

    start: int
    end: int

    @classmethod
    def until_now(cls, milliseconds: float) -> Timing:
        """Return the time that ends now and took these milliseconds."""
        now = time.time_ns()
        taken = milliseconds * _NANOSECONDS
        # The time of a stored request may be that of a wrong clock.
        return cls(now - int(taken) if 0 < taken < now else now, now)

    @property
    def seconds(self) -> float:
        """The duration in seconds."""
        return (self.end - self.start) / 1e9


@define(eq=False)
class SpanWriter:
    """Writes spans.

    Args:
        tracer: the tracer of the provider.
        sampler: the sampler of the provider, which decides about whole traces by their ids.
        ids: the source of ids of the provider.
        outer: the span that has started the host, if its environment names one. Samplers may follow its decision.
    """

    _tracer: Tracer = field(repr=False)
    _sampler: Sampler = field(repr=False)
    _ids: GivenIds = field(repr=False)
    _outer: SpanContext | None = None

    @classmethod
    def of(
        cls, provider: TracerProvider, ids: GivenIds, outer: SpanContext | None, version: str, schema_url: str
    ) -> SpanWriter:
        """Return a writer for a provider that was made with these ids."""
        return cls(provider.get_tracer("sideband", version, schema_url=schema_url), provider.sampler, ids, outer)

    def write(
        self,
        name: str,
        key: SpanKey,
        parent: int | None,
        timing: Timing,
        attributes: Attributes,
        *,
        error: str | None = None,
        is_client: bool = False,
    ) -> None:
        """Write a span.

        Args:
            name: its name.
            key: its ids.
            parent: the id of the span in the same trace that caused it, if there is one.
            timing: when it began and ended.
            attributes: its attributes.
            error: the code of the error with which it ended, if it did.
            is_client: whether it is a request to another system.
        """
        self._ids.key = key
        span = self._tracer.start_span(
            plain(name),
            context=Context() if parent is None else self._context(SpanKey(key.trace, parent)),
            kind=SpanKind.CLIENT if is_client else SpanKind.INTERNAL,
            attributes=attributes,
            start_time=timing.start,
        )
        if error is not None:
            span.set_status(Status(StatusCode.ERROR))
        span.end(timing.end)

    def trace_parent(self, key: SpanKey) -> str:
        """Return the value of the header ``traceparent`` for a span, in version 00 of W3C Trace Context."""
        return f"00-{key.trace:032x}-{key.span:016x}-{int(self._is_sampled(key.trace)):02x}"

    def _context(self, parent: SpanKey) -> Context:
        flags = TraceFlags(TraceFlags.SAMPLED if self._is_sampled(parent.trace) else TraceFlags.DEFAULT)
        span = NonRecordingSpan(SpanContext(parent.trace, parent.span, is_remote=False, trace_flags=flags))
        return set_span_in_context(span, Context())

    def _is_sampled(self, trace: int) -> bool:
        outer = self._outer  # all traces are a part of it
        context = None if outer is None else set_span_in_context(NonRecordingSpan(outer), Context())
        return self._sampler.should_sample(context, trace, "").decision is Decision.RECORD_AND_SAMPLE
