"""What can be configured: the table ``[plugins.openai]``, and each of its services."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sideband_model_client import ServiceAddress, checked_headers


def _checked_address(text: str) -> str:
    return ServiceAddress.parse(text).url


def _checked_services(services: dict[str, OpenAIService]) -> dict[str, OpenAIService]:
    for name, service in services.items():
        if service.base_url is None:
            raise ValueError(f"the service `{name}` has no `base_url`")
    return services


class OpenAIService(BaseModel):
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
    headers: Annotated[dict[str, str], AfterValidator(checked_headers)] = Field(
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


class Config(OpenAIService):
    """The table ``[plugins.openai]``."""

    services: Annotated[
        dict[Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")], OpenAIService],
        AfterValidator(_checked_services),
    ] = Field(default_factory=dict, description="Further services by name: `groq` becomes the provider `openai-groq`.")
    local: bool = Field(default=True, description="Whether to look for servers of models on this machine.")
    ca_file: Path | None = Field(
        default=None, description="Certificate authorities in PEM form that are trusted besides the public ones."
    )
