"""Parameters and results of the ops."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, model_validator
from sideband.ops import OpParams

from ._origins import normal_origin

LONGEST_VALUE = 64 * 1024
_SHORTEST_PASSPHRASE = 8
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}\Z")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}\Z")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_PLACEHOLDERS = {"{value}", "{base64}"}
# these decide how a message is framed or where it goes
_FRAMING = {"connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade"}


def _check_name(name: str) -> str:
    if not _NAME.match(name):
        raise ValueError(
            "a name is 1 to 64 lower-case letters, digits, `_`, `.` and `-`, and begins with a letter or digit"
        )
    return name


def check_value(value: str | bytes) -> str | bytes:
    try:
        size = len(value if isinstance(value, bytes) else value.encode())
    except UnicodeEncodeError:
        raise ValueError("the text is not valid Unicode; store it as bytes") from None
    if size == 0:
        raise ValueError("the value is empty")
    if size > LONGEST_VALUE:
        raise ValueError(f"the value is longer than {LONGEST_VALUE:,} bytes")
    return value


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, form in headers.items():
        if not _HEADER.match(name) or name.lower() in _FRAMING:
            raise ValueError("a key is no header that a secret may stand in")
        if not (form.isascii() and form.isprintable()):
            raise ValueError(f"the form of `{name}` is not printable ASCII")
        found = set(_PLACEHOLDER.findall(form))
        if not found or not found <= _PLACEHOLDERS:
            raise ValueError(f"the form of `{name}` must hold `{{value}}` or `{{base64}}`, and nothing else in braces")
    return headers


def _check_passphrase(value: str) -> str:
    if len(value.encode()) < _SHORTEST_PASSPHRASE:
        raise ValueError(f"a passphrase has at least {_SHORTEST_PASSPHRASE} bytes")
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
    headers: Headers = Field({})


class SecretRotateParams(OpParams):
    """Parameters of `secrets.rotate`."""

    name: Name
    value: Value


class SecretNameParams(OpParams):
    """Parameters of ops that need a name only."""

    name: Name


class SecretReadParams(OpParams):
    """Parameters of `secrets.read` and `secrets.read_binary`."""

    name: Name
    previous: bool = False


class SecretListParams(OpParams):
    """Parameters of `secrets.list`: none."""


class SecretRekeyParams(OpParams):
    """Parameters of `secrets.rekey`."""

    to: Literal["file", "passphrase"]
    passphrase: Annotated[Passphrase | None, Field(repr=False)] = None
    key_file: Path | None = None

    @model_validator(mode="after")
    def _check_what_fits(self) -> Self:
        if (self.passphrase is not None) != (self.to == "passphrase"):
            raise ValueError("`passphrase` is given exactly if the store is to be opened by one")
        if self.key_file is not None and (self.to != "file" or not self.key_file.is_absolute()):
            raise ValueError("`key_file` is an absolute path, of a store that is to be opened by a file")
        return self


class SecretInfo(BaseModel):
    """A secret without its value.

    Attributes:
        name: its name.
        origins: where it may be sent.
        kind: ``text`` or ``binary``.
        updated: when its value was stored, UTC, ISO 8601; ``null`` if nobody knows.
        version: how many values it has had; ``null`` if nobody counts.
        source: where it comes from: ``keyring``, ``encrypted``, ``memory``, ``environment`` or ``vault``.
        previous_until: until when the value before the last rotation can be had back; ``null`` if there is none.
    """

    name: str
    origins: list[str]
    kind: str
    updated: str | None
    version: int | None
    source: str
    previous_until: str | None


class SecretList(BaseModel):
    """The secrets that the caller may use, by name.

    Attributes:
        items: the secrets.
        backend: where this home's own are kept: ``keyring``, ``encrypted`` or ``memory``.
        problems: what is wrong with other sources, by source; their secrets are left out.
    """

    items: list[SecretInfo]
    backend: str
    problems: dict[str, str]


class Rekeyed(BaseModel):
    """What a store is opened by now.

    Attributes:
        opened_by: ``file`` or ``passphrase``.
        left: the path of the old key file, if it was left where it is.
    """

    opened_by: str
    left: str | None
