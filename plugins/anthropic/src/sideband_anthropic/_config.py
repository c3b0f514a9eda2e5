"""What can be configured: the table ``[plugins.anthropic]``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sideband_model_client import checked_headers

from ._service import ANTHROPIC

_SETTINGS_OF_THEIR_OWN = frozenset({"anthropic-version", "anthropic-beta"})
_Token = Annotated[str, Field(pattern=r"^[0-9A-Za-z._-]+$")]


def _checked_address(text: str) -> str:
    return ANTHROPIC.parse_address(text).url


def _checked_headers(headers: dict[str, str]) -> dict[str, str]:
    return checked_headers(headers, reserved=_SETTINGS_OF_THEIR_OWN)


class Config(BaseModel):
    """The table ``[plugins.anthropic]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: Annotated[str, AfterValidator(_checked_address)] | None = Field(
        default=None, description="Where the service is; else ANTHROPIC_BASE_URL, else Anthropic's own."
    )
    key: str | None = Field(
        default=None, min_length=1, description="The name of the secret that holds the key; else `anthropic`."
    )
    version: _Token = Field(default="2023-06-01", description="The version of the API.")
    betas: list[_Token] = Field(default_factory=list, description="Beta features to ask for with each request.")
    headers: Annotated[dict[str, str], AfterValidator(_checked_headers)] = Field(
        default_factory=dict, description="Sent with each request. Nothing secret: see `key`."
    )
    cache: bool = Field(default=True, description="Whether the service is asked to cache what requests share.")
    connect_timeout: float = Field(default=10.0, gt=0, le=600, description="Seconds for making a connection.")
    idle_timeout: float = Field(
        default=300.0, gt=0, le=3_600, description="Seconds of silence after which an answer is given up."
    )
    ca_file: Path | None = Field(
        default=None, description="Certificate authorities in PEM form that are trusted besides the public ones."
    )
