"""The configuration table ``[plugins.anthropic]``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sideband_model_client import checked_headers

from ._service import ANTHROPIC

_RESERVED_HEADERS = frozenset({"anthropic-version", "anthropic-beta"})
_Token = Annotated[str, Field(pattern=r"^[0-9A-Za-z._-]+$")]


def _checked_address(text: str) -> str:
    return ANTHROPIC.parse_address(text).url


def _checked_headers(headers: dict[str, str]) -> dict[str, str]:
    return checked_headers(headers, reserved=_RESERVED_HEADERS)


class Config(BaseModel):
    """The table ``[plugins.anthropic]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: Annotated[str, AfterValidator(_checked_address)] | None = Field(
        default=None,
        description="The address of the service. Default: ANTHROPIC_BASE_URL if it is set, otherwise Anthropic's own.",
    )
    key: str | None = Field(
        default=None, min_length=1, description="The name of the secret that holds the key. Default: `anthropic`."
    )
    version: _Token = Field(default="2023-06-01", description="The version of the API.")
    betas: list[_Token] = Field(default_factory=list, description="The beta features to enable with each request.")
    headers: Annotated[dict[str, str], AfterValidator(_checked_headers)] = Field(
        default_factory=dict, description="Headers to send with each request. Must not contain secrets; see `key`."
    )
    cache: bool = Field(default=True, description="Whether to request prompt caching.")
    connect_timeout: float = Field(default=10.0, gt=0, le=600, description="The time limit for connecting, in seconds.")
    idle_timeout: float = Field(
        default=300.0, gt=0, le=3_600, description="The time limit for each wait for data, in seconds."
    )
    ca_file: Path | None = Field(
        default=None, description="A PEM file of certificate authorities to trust in addition to the public ones."
    )
