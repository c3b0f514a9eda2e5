"""Choose and make exporters by the standard variables of OpenTelemetry."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ._errors import ExporterInvalid

_log = logging.getLogger("sideband.otel")
_PROTOCOLS = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
_GRPC = "opentelemetry-exporter-otlp-proto-grpc"


def exporters(signal: str, environment: Mapping[str, str]) -> list[Any]:
    """Return the exporters of a signal.

    Args:
        signal: ``traces`` or ``metrics``.
        environment: the environment variables.

    Raises:
        ExporterInvalid: if a variable names an exporter that is unknown or not installed.
    """
    variable = f"OTEL_{signal.upper()}_EXPORTER"
    names = [name.strip() for name in environment.get(variable, "").split(",")]
    wanted = [name for name in names if name] or ["otlp"]
    return [_made(signal, variable, name, environment) for name in wanted if name != "none"]


def _made(signal: str, variable: str, name: str, environment: Mapping[str, str]) -> Any:
    wanted = name
    if name == "otlp":
        variables = f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"
        variable = next((one for one in variables if environment.get(one)), variables[1])
        wanted = environment.get(variable) or "http/protobuf"
        if wanted not in _PROTOCOLS:
            raise ExporterInvalid(variable, wanted, hint=f"use one of {', '.join(_PROTOCOLS)}")
        name = _PROTOCOLS[wanted]
    for found in entry_points(group=f"opentelemetry_{signal}_exporter", name=name):
        return found.load()()
    known = sorted({one.name for one in entry_points(group=f"opentelemetry_{signal}_exporter")} | {"otlp", "none"})
    hint = f"install {_GRPC}" if wanted == "grpc" else f"install its package, or use one of {', '.join(known)}"
    raise ExporterInvalid(variable, wanted, hint=hint)


class ReportingExporter(SpanExporter):
    """An exporter that reports when spans cannot be sent, and when they can again, and not each time.

    Args:
        exporter: sends the spans.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._fails = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans."""
        result = self._exporter.export(spans)
        fails = result is not SpanExportResult.SUCCESS
        if fails != self._fails:
            self._fails = fails
            text = "telemetry cannot be sent; is the collector running?" if fails else "telemetry is sent again"
            _log.warning("%s", text)
        return result

    def shutdown(self) -> None:
        """Close the exporter."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what the exporter holds back."""
        return self._exporter.force_flush(timeout_millis)
