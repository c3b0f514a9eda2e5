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
        raise ValueError("the name of a variable is letters, digits and `_`")
    return name


def _check_path(path: str) -> str:
    path = path.strip("/")
    if path and not all(_SEGMENT.match(segment) for segment in path.split("/")):
        raise ValueError("a path is parts of letters, digits, `_`, `.` and `-`, joined with `/`")
    return path


Variable = Annotated[str, AfterValidator(_check_variable)]
ServerPath = Annotated[str, Field(max_length=500), AfterValidator(_check_path)]


class _SecretsTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EnvironmentSecret(_SecretsTable):
    """A secret that a variable of the environment holds. Only what is named here is ever looked at.

    Attributes:
        variable: the name of the variable.
        origins: where its value may be sent to.
        headers: how it is sent, with ``{value}`` or ``{base64}`` where the value goes.
    """

    variable: Variable
    origins: Origins = ()
    headers: Headers = {}


class VaultSecret(_SecretsTable):
    """What this configuration says of one secret of the server, in the place of what its own fields say.

    Attributes:
        field: the field with the value.
        origins: where it may be sent to.
        headers: how it is sent, with ``{value}`` or ``{base64}`` where the value goes.
    """

    field: Annotated[str, Field(min_length=1, max_length=100)] = "value"
    origins: Origins = ()
    headers: Headers = {}


class VaultToken(_SecretsTable):
    """Where the token for the server is. Exactly one of these.

    Attributes:
        variable: a variable of the environment.
        file: a file that only you can read; it may be replaced at any time, by an agent that renews it.
        handle: the name of a secret in the store of this home, bound to the server's address.
    """

    variable: Variable | None = None
    file: Path | None = None
    handle: Name | None = None

    @model_validator(mode="after")
    def _only_one(self) -> Self:
        if len(self.model_fields_set) > 1:
            raise ValueError("a token is in one place: `variable`, `file` or `handle`")
        return self


class VaultConfig(_SecretsTable):
    """A server with the KV secrets engine of Vault, version 2 (HashiCorp Vault, OpenBao).

    Attributes:
        address: ``https://vault.internal:8200``; ``http://`` only for an address of this machine.
        mount: where the engine is mounted.
        prefix: the folder of the secrets below it.
        namespace: the namespace, if the server has them.
        ca_file: certificates to trust in the place of the system's.
        timeout: seconds that one request may take.
        token: where the token for the server is.
        secrets: what this configuration says of single secrets, by their names.
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
            raise ValueError("the mount is empty")
        return self


class Config(_SecretsTable):
    """Where secrets are kept, and where else they come from.

    Attributes:
        backend: where this home's own are kept: ``keyring`` (of the operating system), ``encrypted`` (a file),
            ``memory`` (until the host ends), or ``auto``: the keyring where a real one answers, else the file; once
            something is stored it stays there.
        key: what opens the encrypted file: ``passphrase``, ``file``, or ``auto``: a new file is opened by the
            passphrase if there is one.
        key_file: where the key file is; by default beside the store, in ``SIDEBAND_HOME/secrets/key``.
        prompt: whether to ask for a passphrase on the terminal if ``SIDEBAND_SECRETS_PASSPHRASE`` is not set.
        service: the service name in the keyring; by default one that names the home folder.
        grace: seconds for which the value before can be had back after a rotation.
        sources: other places, ``environment`` and ``vault``, that are asked in this order for what is not in the
            store.
        environment: secrets that variables of the environment hold, by name.
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
            raise ValueError("`sources` names one twice")
        there = {"environment": bool(self.environment), "vault": self.vault.address is not None}
        for source, is_there in there.items():
            if is_there and source not in self.sources:
                raise ValueError(f"`{source}` is configured, and not in `sources`")
            if source in self.sources and not is_there:
                needed = "`vault.address`" if source == "vault" else "a table `environment.NAME`"
                raise ValueError(f"`{source}` is in `sources`, and {needed} is missing")
        return self


def _server_origin(address: str) -> str:
    origin = normal_origin(address)
    parts = urlsplit(origin)
    if parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname or "")):
        return origin
    raise ValueError("a token is sent to it: `https://`, or `http://127.0.0.1` on this machine")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
