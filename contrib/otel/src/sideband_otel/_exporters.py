"""Choose and make exporters by the standard variables of OpenTelemetry."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from ._errors import ExporterInvalid

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
        # What commands print is their answer, which programs may read.
        return found.load()(**({"out": sys.stderr} if name == "console" else {}))
    known = sorted({one.name for one in entry_points(group=f"opentelemetry_{signal}_exporter")} | {"otlp", "none"})
    hint = f"install {_GRPC}" if wanted == "grpc" else f"install its package, or use one of {', '.join(known)}"
    raise ExporterInvalid(variable, wanted, hint=hint)
