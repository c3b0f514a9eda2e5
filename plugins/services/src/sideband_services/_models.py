"""Parameters and results of the ops."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_SERVICE = r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$"


class _ServiceData(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ServicesCallParams(_ServiceData):
    """A call of a service."""

    name: str = Field(pattern=_SERVICE, max_length=64, description="The name of the service.")
    params: dict[str, Any] = Field(description="The arguments of the tool that provides it.")
    provider: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="The name of the skill to use. Default: the one that the configuration chooses, else the first.",
    )


class ServicesListParams(_ServiceData):
    """The services to list."""

    name: str | None = Field(
        default=None, pattern=_SERVICE, max_length=64, description="List the providers of this service only."
    )


class ServiceProvider(_ServiceData):
    """A skill that provides a service.

    Attributes:
        service: the name of the service.
        id: the name of the skill.
        via: the tool that provides it: ``skill.tool``.
        state: ``ready``, ``needs_grant``, or ``unavailable``.
        reason: why it is not ready.
        chosen: whether a call without ``provider`` uses it.
    """

    service: str
    id: str
    via: str
    state: Literal["ready", "needs_grant", "unavailable"]
    reason: str = ""
    chosen: bool = False
