"""Open and close the SDK of OpenTelemetry for one host. The providers of the process are not changed."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from threading import Thread
from typing import Any, Final

import anyio
from attrs import define, field
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanContext, TraceFlags

from ._conventions import SCHEMA_URL
from ._exporters import exporters
from ._headers import check_headers
from ._identity import SpanKey
from ._instruments import Instruments
from ._reports import Reports
from ._spans import GivenIds, SpanWriter
from ._telemetry import Telemetry
from ._version import __version__

# Otherwise the messages of the SDK would be printed where logging is not configured.
logging.getLogger("opentelemetry").addHandler(logging.NullHandler())

_SERVICE: Final = "sideband"
_TRACE_PARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})\Z")


@define(eq=False)
class OpenTelemetry:
    """The open SDK of a host.

    Attributes:
        telemetry: takes the events.
    """

    telemetry: Telemetry
    _reports: Reports = field(repr=False)
    _providers: tuple[Any, ...] = field(repr=False)

    async def close(self, seconds: float) -> None:
        """Send what is left, and close the SDK. What cannot be sent within these seconds is lost.

        Args:
            seconds: how long to wait at most.
        """
        self.telemetry.close()
        # The SDK waits for the collector. Daemon threads cannot delay the end of the process.
        threads = [
            Thread(target=_shut_down, args=[provider], name="sideband-otel-close", daemon=True)
            for provider in self._providers
        ]
        for thread in threads:
            thread.start()
        is_sent = await anyio.to_thread.run_sync(_join, threads, seconds)
        self._reports.close(unsent_after=None if is_sent else seconds)


def open_telemetry(environment: Mapping[str, str]) -> OpenTelemetry:
    """Open the SDK.

    Args:
        environment: the environment variables. The exporters of the SDK read those of the process.

    Raises:
        ExporterInvalid: if a variable names an exporter that is unavailable.
    """
    check_headers(environment)
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: _SERVICE}))
    span_exporters, metric_exporters = exporters("traces", environment), exporters("metrics", environment)
    ids, reports = GivenIds(), Reports()
    tracers = TracerProvider(resource=resource, id_generator=ids, shutdown_on_exit=False)
    with ExitStack() as opened:
        opened.callback(tracers.shutdown)  # ends the threads if a later variable is invalid
        for one in span_exporters:
            tracers.add_span_processor(BatchSpanProcessor(reports.watch(one)))
        readers = [_reader(one, reports) for one in metric_exporters]
        meters = MeterProvider(readers, resource, shutdown_on_exit=False)
        opened.pop_all()
    outer = _outer(environment)
    telemetry = Telemetry(
        SpanWriter.of(tracers, ids, outer, __version__, SCHEMA_URL),
        Instruments(meters.get_meter("sideband", __version__, SCHEMA_URL)),
        None if outer is None else SpanKey(outer.trace_id, outer.span_id),
    )
    return OpenTelemetry(telemetry, reports, (tracers, meters))


def _reader(exporter: Any, reports: Reports) -> MetricReader:
    """Return what reads the metrics for an exporter. Some, such as that for Prometheus, do so themselves."""
    if isinstance(exporter, MetricReader):
        return exporter
    return PeriodicExportingMetricReader(reports.watch(exporter))


def _shut_down(provider: Any) -> None:
    with suppress(Exception):  # it is reported that telemetry is not sent, and nothing else is lost
        provider.shutdown()


def _join(threads: Sequence[Thread], seconds: float) -> bool:
    """Wait until threads have ended, and return whether they have."""
    latest = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0, latest - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)


def _outer(environment: Mapping[str, str]) -> SpanContext | None:
    """Return the span that started the process, by the variable ``TRACEPARENT``."""
    if (found := _TRACE_PARENT.match(environment.get("TRACEPARENT", ""))) is None:
        return None
    outer = SpanContext(int(found[1], 16), int(found[2], 16), is_remote=True, trace_flags=TraceFlags(int(found[3], 16)))
    return outer if outer.is_valid else None
