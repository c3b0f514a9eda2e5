"""The table `[plugins.secrets]`."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from ._models import Headers, Name, Origins
from ._origins import normal_origin

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}\Z")
_SEGMENT = re.compile(r"(?!\.\.?\Z)[A-Za-z0-9_.-]{1,100}\Z")
_WEEK = 7 * 24 * 3600.0


def _check_variable(name: str) -> str:
    if not _VARIABLE.match(name):
        raise ValueError("variable name must consist of letters, digits and `_`")
    return name


def _check_path(path: str) -> str:
    path = path.strip("/")
    if path and not all(_SEGMENT.match(segment) for segment in path.split("/")):
        raise ValueError("path segments must consist of letters, digits, `_`, `.` and `-`")
    return path


Variable = Annotated[str, AfterValidator(_check_variable)]
ServerPath = Annotated[str, Field(max_length=500), AfterValidator(_check_path)]


class _SecretsTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EnvironmentSecret(_SecretsTable):
    """A secret in an environment variable. No other variables are read.

    Attributes:
        variable: the name of the variable.
        origins: the origins that the value may be sent to.
        headers: the headers to send, with ``{value}`` or ``{base64}`` as placeholder.
    """

    variable: Variable
    origins: Origins = ()
    headers: Headers = {}


class VaultSecret(_SecretsTable):
    """Settings of one secret of the server. They override the secret's own fields.

    Attributes:
        field: the field that contains the value.
        origins: the origins that the value may be sent to.
        headers: the headers to send, with ``{value}`` or ``{base64}`` as placeholder.
    """

    field: Annotated[str, Field(min_length=1, max_length=100)] = "value"
    origins: Origins = ()
    headers: Headers = {}


class VaultToken(_SecretsTable):
    """Where to read the server's token. Set exactly one attribute.

    Attributes:
        variable: an environment variable.
        file: a file that only its owner can read. Another process, such as Vault Agent, may
            replace it at any time to renew the token.
        handle: the name of a secret in the local store, bound to the server's address.
    """

    variable: Variable | None = None
    file: Path | None = None
    handle: Name | None = None

    @model_validator(mode="after")
    def _only_one(self) -> Self:
        if len(self.model_fields_set) > 1:
            raise ValueError("set only one of `variable`, `file` and `handle`")
        return self


class VaultConfig(_SecretsTable):
    """A server with version 2 of Vault's KV secrets engine (HashiCorp Vault, OpenBao).

    Attributes:
        address: ``https://vault.internal:8200``; ``http://`` is allowed for loopback addresses only.
        mount: the mount path of the engine.
        prefix: the folder of the secrets below the mount.
        namespace: the namespace, if the server supports namespaces.
        ca_file: certificates to trust instead of the system's.
        timeout: the timeout of one request in seconds.
        token: where to read the server's token.
        secrets: settings of single secrets, by name.
    """

    address: str | None = None
    mount: ServerPath = "secret"
    prefix: ServerPath = ""
    namespace: ServerPath = ""
    ca_file: Path | None = None
    timeout: Annotated[float, Field(gt=0, le=300)] = 10.0
    token: VaultToken = VaultToken(variable="VAULT_TOKEN")
    secrets: dict[Name, VaultSecret] = {}

    @field_validator("address")
    @classmethod
    def _check_address(cls, address: str | None) -> str | None:
        return None if address is None else _server_origin(address)

    @model_validator(mode="after")
    def _check_mount(self) -> Self:
        if not self.mount:
            raise ValueError("mount must not be empty")
        return self


class Config(_SecretsTable):
    """Where secrets are stored, and which other sources are read.

    Attributes:
        backend: the local store: ``keyring`` (of the operating system), ``encrypted`` (a file), ``memory`` (until the
            host exits), or ``auto``: the keyring if a supported one is available, otherwise the file. Once a secret is
            stored, the choice is permanent.
        key: the key of the encrypted file: ``passphrase``, ``file``, or ``auto``: a new file uses the passphrase if
            one is given, otherwise a key file.
        key_file: the path of the key file; by default beside the store, at ``SIDEBAND_HOME/secrets/key``.
        prompt: whether to prompt for a passphrase on the terminal if ``SIDEBAND_SECRETS_PASSPHRASE`` is not set.
        service: the service name in the keyring; by default derived from the home folder.
        grace: how many seconds a previous value can be restored after a rotation.
        sources: further sources, ``environment`` and ``vault``, that are asked in this order for names that are not in
            the local store.
        environment: secrets in environment variables, by name.
        vault: the settings of the source ``vault``.
    """

    backend: Literal["auto", "keyring", "encrypted", "memory"] = "auto"
    key: Literal["auto", "file", "passphrase"] = "auto"
    key_file: Path | None = None
    prompt: bool = False
    service: str | None = None
    grace: Annotated[float, Field(ge=0, le=366 * 24 * 3600)] = _WEEK
    sources: tuple[Literal["environment", "vault"], ...] = ()
    environment: dict[Name, EnvironmentSecret] = {}
    vault: VaultConfig = VaultConfig()

    @model_validator(mode="after")
    def _check_sources(self) -> Self:
        if len(set(self.sources)) != len(self.sources):
            raise ValueError("`sources` contains duplicates")
        configured = {"environment": bool(self.environment), "vault": self.vault.address is not None}
        for source, is_configured in configured.items():
            if is_configured and source not in self.sources:
                raise ValueError(f"`{source}` is configured but missing in `sources`")
            if source in self.sources and not is_configured:
                needed = "`vault.address`" if source == "vault" else "a table `environment.NAME`"
                raise ValueError(f"`{source}` in `sources` requires {needed}")
        return self


def _server_origin(address: str) -> str:
    origin = normal_origin(address)
    parts = urlsplit(origin)
    if parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname or "")):
        return origin
    raise ValueError("expected `https://`, or `http://` with a loopback address, since a token is sent there")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
