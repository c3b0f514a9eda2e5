"""Parameters and results of the ops, and the scope that capabilities of the family use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar

import attrs
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sideband.ops import Scope

from ._origins import normal_origin

__all__ = ["LONGEST_VALUE", "ListParams", "NameParams", "SecretInfo", "SecretList", "SecretsScope", "SetParams"]

LONGEST_VALUE = 64 * 1024
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}\Z")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}\Z")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_PLACEHOLDERS = {"{value}", "{base64}"}
# these decide how a message is framed or where it goes
_FRAMING = {"connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade"}


@attrs.frozen
class SecretsScope(Scope, family="secrets"):
    """What a capability of `secrets` may limit: `secrets:name=github`, `secrets:name=github,mode=reveal`.

    Attributes:
        name: the secret's name.
        mode: `use` (send it where it is bound to, without seeing it), `reveal` (see the value) or `write` (store and
            delete). A capability that names no mode allows `use` only.
    """

    # a skill that may use a credential must not thereby see it, or replace it by one of its own
    defaults: ClassVar[Mapping[str, tuple[str, ...]]] = {"mode": ("use",)}

    name: str | None = None
    mode: str | None = None


def _check_name(name: str) -> str:
    if not _NAME.match(name):
        raise ValueError(
            "a name is 1 to 64 lower-case letters, digits, `_`, `.` and `-`, and begins with a letter or digit"
        )
    return name


def _check_value(value: str | bytes) -> str | bytes:
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


Name = Annotated[str, AfterValidator(_check_name)]


class _Params(BaseModel):
    # an error about a parameter must not carry a value
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class SetParams(_Params):
    """Parameters of `secrets.set`."""

    name: Name
    value: Annotated[str | bytes, AfterValidator(_check_value), Field(repr=False)]
    origins: Annotated[list[Annotated[str, AfterValidator(normal_origin)]], Field(max_length=32)] = []
    headers: Annotated[dict[str, str], AfterValidator(_check_headers), Field(max_length=8)] = {}


class NameParams(_Params):
    """Parameters of `secrets.read`, `secrets.read_binary` and `secrets.delete`."""

    name: Name


class ListParams(_Params):
    """Parameters of `secrets.list`: none."""


class SecretInfo(BaseModel):
    """A secret without its value.

    Attributes:
        name: its name.
        origins: where it may be sent.
        kind: ``text`` or ``binary``.
        updated: when it was stored, UTC, ISO 8601.
    """

    name: str
    origins: list[str]
    kind: str
    updated: str


class SecretList(BaseModel):
    """The secrets that the caller may use, by name.

    Attributes:
        items: the secrets.
        backend: where they are kept: ``keyring``, ``encrypted`` or ``memory``.
    """

    items: list[SecretInfo]
    backend: str
