"""Parameters and results of the ops."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, model_validator
from sideband.ops import OpParams

from ._origins import normal_origin

MAX_VALUE_BYTES = 64 * 1024
_MIN_PASSPHRASE_BYTES = 8
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}\Z")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}\Z")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_PLACEHOLDERS = {"{value}", "{base64}"}
# headers that control the framing or the destination of a message
_FRAMING = {"connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade"}


def _check_name(name: str) -> str:
    if not _NAME.match(name):
        raise ValueError(
            "expected 1 to 64 lower-case letters, digits, `_`, `.` and `-`, beginning with a letter or digit"
        )
    return name


def check_value(value: str | bytes) -> str | bytes:
    try:
        size = len(value if isinstance(value, bytes) else value.encode())
    except UnicodeEncodeError:
        raise ValueError("text is not valid Unicode; store it as bytes") from None
    if size == 0:
        raise ValueError("value must not be empty")
    if size > MAX_VALUE_BYTES:
        raise ValueError(f"value exceeds {MAX_VALUE_BYTES:,} bytes")
    return value


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, template in headers.items():
        if not _HEADER.match(name) or name.lower() in _FRAMING:
            raise ValueError("a header name is invalid, or not allowed for secrets")
        if not (template.isascii() and template.isprintable()):
            raise ValueError(f"value of `{name}` must be printable ASCII")
        found = set(_PLACEHOLDER.findall(template))
        if not found or not found <= _PLACEHOLDERS:
            raise ValueError(f"value of `{name}` must contain `{{value}}` or `{{base64}}`, and no other braces")
    return headers


def _check_passphrase(value: str) -> str:
    if len(value.encode()) < _MIN_PASSPHRASE_BYTES:
        raise ValueError(f"passphrase must have at least {_MIN_PASSPHRASE_BYTES} bytes")
    return value


Name = Annotated[str, AfterValidator(_check_name)]
Value = Annotated[str | bytes, AfterValidator(check_value), Field(repr=False)]
Origins = Annotated[tuple[Annotated[str, AfterValidator(normal_origin)], ...], Field(max_length=32)]
Headers = Annotated[dict[str, str], AfterValidator(_check_headers), Field(max_length=8)]
Passphrase = Annotated[str, AfterValidator(_check_passphrase)]


class SecretSetParams(OpParams):
    """Parameters of `secrets.set`."""

    name: Name
    value: Value
    origins: Origins = ()
    headers: Headers = Field(default={})


class SecretRotateParams(OpParams):
    """Parameters of `secrets.rotate`."""

    name: Name
    value: Value


class SecretNameParams(OpParams):
    """Parameters of `secrets.rollback` and `secrets.delete`."""

    name: Name
    stored_by: str | None = Field(
        default=None, max_length=100, description="the effect that stored the current value, for undo"
    )


class SecretReadParams(OpParams):
    """Parameters of `secrets.read` and `secrets.read_binary`."""

    name: Name
    previous: bool = False


class SecretListParams(OpParams):
    """Parameters of `secrets.list`, which takes none."""


class SecretRekeyParams(OpParams):
    """Parameters of `secrets.rekey`."""

    to: Literal["file", "passphrase"]
    passphrase: Annotated[Passphrase | None, Field(repr=False)] = None
    key_file: Path | None = None

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if (self.passphrase is not None) != (self.to == "passphrase"):
            raise ValueError("`passphrase` must be given exactly if `to` is `passphrase`")
        if self.key_file is not None and (self.to != "file" or not self.key_file.is_absolute()):
            raise ValueError("`key_file` must be an absolute path, and is only allowed if `to` is `file`")
        return self


class SecretInfo(BaseModel):
    """A secret without its value.

    Attributes:
        name: the secret's name.
        origins: the origins that it may be sent to.
        kind: ``text`` or ``binary``.
        updated: when its value was stored, UTC, ISO 8601; ``null`` if unknown.
        version: the number of values so far; ``null`` if unknown.
        source: its source: ``keyring``, ``encrypted``, ``memory``, ``environment`` or ``vault``.
        previous_until: when the value before the last rotation expires; ``null`` if there is no previous value.
    """

    name: str
    origins: list[str]
    kind: str
    updated: str | None
    version: int | None
    source: str
    previous_until: str | None


class SecretList(BaseModel):
    """The secrets that the caller has access to, by name.

    Attributes:
        items: the secrets.
        backend: the backend of the local store: ``keyring``, ``encrypted`` or ``memory``.
        problems: the errors of other sources, by source; their secrets are missing from ``items``.
    """

    items: list[SecretInfo]
    backend: str
    problems: dict[str, str]


class Rekeyed(BaseModel):
    """The result of a rekey.

    Attributes:
        opened_by: the kind of the new key: ``file`` or ``passphrase``.
        left: the path of the old key file, if it was kept.
    """

    opened_by: str
    left: str | None
