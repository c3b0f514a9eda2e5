"""The ids of traces and spans, derived from those of runs and effects.

A run is a trace, also if it is resumed later or on another host. The span of an effect has an id that its child effects
and the receivers of its trace context know before it has ended.
"""

from __future__ import annotations

from hashlib import sha256
from secrets import randbits

from attrs import frozen

SPAN_BITS, TRACE_BITS = 64, 128


@frozen
class SpanKey:
    """A span in a trace.

    Attributes:
        trace: the number of the trace.
        span: the number of the span.
    """

    trace: int
    span: int


def trace_of(name: str) -> int:
    """Return the number of the trace of a run, or of a call without an agent."""
    return _number(f"trace {name}", TRACE_BITS)


def span_of(name: str) -> int:
    """Return the number of the span of an effect, or of a tool call with the name ``session:run:step``."""
    return _number(f"span {name}", SPAN_BITS)


def new_span() -> int:
    """Return the number of a span to which nothing refers by name."""
    return randbits(SPAN_BITS) or 1


def new_trace() -> int:
    """Return the number of a trace to which nothing else belongs."""
    return randbits(TRACE_BITS) or 1


def _number(name: str, bits: int) -> int:
    return int.from_bytes(sha256(name.encode(errors="surrogatepass")).digest()[: bits // 8]) or 1
