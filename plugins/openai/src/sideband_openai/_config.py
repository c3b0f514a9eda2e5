"""What can be configured: the table ``[plugins.openai]``, and each of its services."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ._address import Address

__all__ = ["Config", "Service"]

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[ -~]*")
# What carries a key belongs into the store of secrets, and what frames the request is the client's.
_REFUSED = frozenset(
    {"authorization", "api-key", "x-api-key", "cookie", "proxy-authorization"}
    | {"host", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding", "upgrade"}
    | {"accept", "accept-encoding", "te", "trailer", "expect"}
)


def _checked_address(text: str) -> str:
    return Address.parse(text).url


def _checked_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if name.lower() in _REFUSED:
            raise ValueError(f"`{name}` can't be set here; a key belongs into the store of secrets")
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise ValueError(f"`{name}` is no header of one line")
    return headers


def _checked_services(services: dict[str, Service]) -> dict[str, Service]:
    for name, service in services.items():
        if service.base_url is None:
            raise ValueError(f"the service `{name}` has no `base_url`")
    return services


class Service(BaseModel):
    """One service: where it is, and how it is spoken to."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: Annotated[str, AfterValidator(_checked_address)] | None = Field(
        default=None, description="The address below which the service answers, mostly with `/v1` at its end."
    )
    api: Literal["auto", "chat", "responses"] = Field(
        default="auto", description="Chat Completions or Responses; `auto`: Responses for OpenAI's own service."
    )
    key: str | None = Field(
        default=None, min_length=1, description="The name of the secret that holds the key; else the provider's name."
    )
    headers: Annotated[dict[str, str], AfterValidator(_checked_headers)] = Field(
        default_factory=dict, description="Sent with each request. Nothing secret: see `key`."
    )
    api_version: str | None = Field(
        default=None, pattern=r"^[0-9A-Za-z.-]+$", description="Makes it an Azure resource with deployments."
    )
    summaries: Literal["auto", "concise", "detailed"] | None = Field(
        default=None, description="Responses: ask for summaries of thoughts. OpenAI shows them to verified users only."
    )
    connect_timeout: float = Field(default=10.0, gt=0, le=600, description="Seconds for making a connection.")
    idle_timeout: float = Field(
        default=300.0, gt=0, le=3_600, description="Seconds of silence after which an answer is given up."
    )


class Config(Service):
    """The table ``[plugins.openai]``."""

    services: Annotated[
        dict[Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")], Service], AfterValidator(_checked_services)
    ] = Field(default_factory=dict, description="Further services by name: `groq` becomes the provider `openai-groq`.")
    local: bool = Field(default=True, description="Whether to look for servers of models on this machine.")
    ca_file: Path | None = Field(
        default=None, description="Certificate authorities in PEM form that are trusted besides the public ones."
    )
