"""Parameters and results of the ops of `demo`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class ServiceParams(BaseModel):
    """Parameters of ``demo.service``: none."""

    model_config = ConfigDict(extra="forbid")


class DemoAddress(BaseModel):
    """Where the service is."""

    url: str = Field(description="its address, without a path")
    credential: str = Field(description="the handle of the credential that it wants")
