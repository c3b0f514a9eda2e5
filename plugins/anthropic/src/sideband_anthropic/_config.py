"""What can be configured: the table ``[plugins.anthropic]``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ._address import Address

__all__ = ["Config"]

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[ -~]*")
# What carries a key belongs into the store of secrets, what frames the request is the client's, and the last two have
# keys of their own.
_REFUSED = frozenset(
    {"authorization", "x-api-key", "cookie", "proxy-authorization"}
    | {"host", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding", "upgrade"}
    | {"accept", "accept-encoding", "te", "trailer", "expect"}
    | {"anthropic-version", "anthropic-beta"}
)
_Token = Annotated[str, Field(pattern=r"^[0-9A-Za-z._-]+$")]


def _checked_address(text: str) -> str:
    return Address.parse(text).url("")


def _checked_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if name.lower() in _REFUSED:
            raise ValueError(f"`{name}` can't be set here; a key belongs into the store of secrets")
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise ValueError(f"`{name}` is no header of one line")
    return headers


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
