"""The errors of the plugin.

SidebandError                                     (of sideband)
├── ExporterInvalid(ValueError)                   otel.exporter    a variable names an exporter that is unavailable
└── HeadersInvalid(ValueError)                    otel.headers     a variable contains an invalid header
"""

from __future__ import annotations

from sideband import SidebandError


class ExporterInvalid(SidebandError, ValueError):
    """A variable names an exporter or a protocol that is unknown or not installed."""

    code = "otel.exporter"

    def __init__(self, variable: str, value: str, *, hint: str) -> None:
        super().__init__(f"`{variable}`: no exporter for {value[:80]!a}", hint=hint)


class HeadersInvalid(SidebandError, ValueError):
    """A variable contains an invalid header, whose value may be a secret."""

    code = "otel.headers"

    def __init__(self, variable: str, number: int) -> None:
        super().__init__(
            f"`{variable}`: header {number} is invalid",
            hint="write `name=value,name=value`, with values encoded as in URLs",
        )
