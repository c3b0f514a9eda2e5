"""Open and close the SDK of OpenTelemetry for one host. The providers of the process are not changed."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from threading import Thread
from typing import Any, Final

import anyio
from attrs import define, field
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanContext, TraceFlags

from ._conventions import SCHEMA_URL
from ._exporters import ReportingExporter, exporters
from ._identity import SpanKey
from ._instruments import Instruments
from ._spans import GivenIds, SpanWriter
from ._telemetry import Telemetry
from ._version import __version__

_SERVICE: Final = "sideband"
_TRACE_PARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})\Z")


@define(eq=False)
class OpenTelemetry:
    """The open SDK of a host.

    Attributes:
        telemetry: takes the events.
    """

    telemetry: Telemetry
    _providers: tuple[Any, ...] = field(repr=False)

    async def close(self, seconds: float) -> None:
        """Send what is left, and close the SDK. What cannot be sent within these seconds is lost.

        Args:
            seconds: how long to wait at most.
        """
        # The SDK waits for the collector. A daemon thread cannot delay the end of the process.
        thread = Thread(target=self._shut_down, name="sideband-otel-close", daemon=True)
        thread.start()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(thread.join, seconds)

    def _shut_down(self) -> None:
        for provider in self._providers:
            provider.shutdown()


def open_telemetry(environment: Mapping[str, str]) -> OpenTelemetry:
    """Open the SDK.

    Args:
        environment: the environment variables. The exporters of the SDK read those of the process.

    Raises:
        ExporterInvalid: if a variable names an exporter that is unavailable.
    """
    # Otherwise its messages would be printed where logging is not configured.
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: _SERVICE}))
    span_exporters, metric_exporters = exporters("traces", environment), exporters("metrics", environment)
    ids = GivenIds()
    tracers = TracerProvider(resource=resource, id_generator=ids, shutdown_on_exit=False)
    for one in span_exporters:
        tracers.add_span_processor(BatchSpanProcessor(ReportingExporter(one)))
    readers = [PeriodicExportingMetricReader(one) for one in metric_exporters]
    meters = MeterProvider(readers, resource, shutdown_on_exit=False)
    outer = _outer(environment)
    telemetry = Telemetry(
        SpanWriter.of(tracers, ids, outer, __version__, SCHEMA_URL),
        Instruments(meters.get_meter("sideband", __version__, SCHEMA_URL)),
        None if outer is None else SpanKey(outer.trace_id, outer.span_id),
    )
    return OpenTelemetry(telemetry, (tracers, meters))


def _outer(environment: Mapping[str, str]) -> SpanContext | None:
    """Return the span that started the process, by the variable ``TRACEPARENT``."""
    if (found := _TRACE_PARENT.match(environment.get("TRACEPARENT", ""))) is None:
        return None
    outer = SpanContext(int(found[1], 16), int(found[2], 16), is_remote=True, trace_flags=TraceFlags(int(found[3], 16)))
    return outer if outer.is_valid else None
