"""Parameters and results of the ops of `demo`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class ServiceParams(BaseModel):
    """Parameters of ``demo.service``. It takes none."""

    model_config = ConfigDict(extra="forbid")


class DemoAddress(BaseModel):
    """The address of the demo service."""

    url: str = Field(description="the base URL of the service, without a path")
    credential: str = Field(description="the handle of the credential for the service")
