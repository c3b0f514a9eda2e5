"""The configuration table ``[plugins.openai]`` and its services."""

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
            raise ValueError(f"missing `base_url` of the service `{name}`")
    return services


class OpenAIService(BaseModel):
    """A service: its address, key and protocol."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: Annotated[str, AfterValidator(_checked_address)] | None = Field(
        default=None, description="The base URL of the API, usually ending with `/v1`."
    )
    api: Literal["auto", "chat", "responses"] = Field(
        default="auto", description="Chat Completions or Responses; `auto` uses Responses for OpenAI's own service."
    )
    key: str | None = Field(
        default=None,
        min_length=1,
        description="The name of the secret that holds the key. Default: the provider's name.",
    )
    headers: Annotated[dict[str, str], AfterValidator(checked_headers)] = Field(
        default_factory=dict, description="Headers to send with each request. Must not contain secrets; see `key`."
    )
    api_version: str | None = Field(
        default=None,
        pattern=r"^[0-9A-Za-z.-]+$",
        description="The API version of an Azure resource with deployments. Unset for other services.",
    )
    summaries: Literal["auto", "concise", "detailed"] | None = Field(
        default=None, description="Responses: request reasoning summaries. OpenAI requires a verified organization."
    )
    text_calls: bool = Field(
        default=True,
        description="Whether to look for tool calls in the text, where models write them if the server does not "
        "know their format. Never done for OpenAI's own service and Azure.",
    )
    connect_timeout: float = Field(default=10.0, gt=0, le=600, description="The time limit for connecting, in seconds.")
    idle_timeout: float = Field(
        default=300.0, gt=0, le=3_600, description="The time limit for each wait for data, in seconds."
    )


class Config(OpenAIService):
    """The table ``[plugins.openai]``."""

    services: Annotated[
        dict[Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")], OpenAIService],
        AfterValidator(_checked_services),
    ] = Field(default_factory=dict, description="Further services by name: `groq` becomes the provider `openai-groq`.")
    local: bool = Field(default=True, description="Whether to look for model servers on this machine.")
    ca_file: Path | None = Field(
        default=None, description="A PEM file of certificate authorities to trust in addition to the public ones."
    )
