"""The configuration of the plugin."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Config(BaseModel):
    """The table ``[plugins.otel]``. Where telemetry is sent is set by the variables of OpenTelemetry.

    Attributes:
        enabled: whether telemetry is sent; if it is not set, it is sent if a variable names an exporter or an endpoint.
        close_seconds: how long the host waits for the last telemetry to be sent when it closes, in seconds.

    Example:
        >>> Config(enabled=True).close_seconds
        3.0
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool | None = Field(default=None, description="Send telemetry; by default if a variable says where.")
    close_seconds: float = Field(
        default=3.0,
        ge=0,
        le=25,  # the host gives a plugin 30 s to end
        description="How long to wait for the last telemetry at the close of the host, in seconds.",
    )
