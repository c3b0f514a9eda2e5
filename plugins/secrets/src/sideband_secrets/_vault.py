"""Secrets of a server with version 2 of Vault's KV engine: read-only, with their origins in their fields."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from attrs import define, field
from pydantic import ValidationError

from ._backends import Step, StoredSecret, Summary
from ._config import VaultConfig, VaultSecret
from ._errors import (
    SecretAudience,
    SecretReadOnly,
    SecretsError,
    VaultDenied,
    VaultMalformed,
    VaultMount,
    VaultTokenMissing,
)
from ._files import read_private
from ._models import SecretSetParams
from ._vault_client import VaultClient

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}\Z")
_MAX_NAMES = 1000
_REQUESTS = 16  # concurrent ones
_MAX_TOKEN_FILE_BYTES = 64 * 1024


@define
class VaultBackend:
    """Reads secrets from a server. See ``Backend``.

    Args:
        config: the settings of the server.
        client: the client for its API.
    """

    config: VaultConfig
    client: VaultClient
    name: str = field(default="vault", init=False)
    writable: bool = field(default=False, init=False)

    async def read(self, name: str) -> StoredSecret | None:
        """See ``Backend``."""
        if name == self.config.token.handle:
            return None  # the server's own token is not stored there
        answer = await self.client.get("GET", self._path("data", name))
        if answer is None or (answer.get("data") is None and "metadata" in answer):
            return None
        fields, metadata = answer.get("data"), answer.get("metadata")
        if not isinstance(fields, dict) or not isinstance(metadata, dict):
            raise VaultMount(self.client.address, self.config.mount)
        return self._stored(name, fields, metadata)

    async def summaries(self, wanted: Callable[[str], bool]) -> tuple[Summary, ...]:
        """See ``Backend``. Leaves out secrets that the token may not read, and invalid ones."""
        return tuple(stored.summary for stored in await self._read_all(wanted))

    async def all(self, *, ask: bool) -> tuple[StoredSecret, ...]:  # noqa: ARG002  never asks
        """See ``Backend``."""
        return await self._read_all(lambda _: True)

    async def change(self, name: str, step: Step) -> None:  # noqa: ARG002  read-only
        """See ``Backend``."""
        raise SecretReadOnly(name, self.name)

    async def _read_all(self, wanted: Callable[[str], bool]) -> tuple[StoredSecret, ...]:
        answer = await self.client.get("LIST", self._path("metadata", ""))
        keys = [] if answer is None else answer.get("keys")
        if not isinstance(keys, list) or len(keys) > _MAX_NAMES:
            raise VaultMalformed(self.client.address, f"the list is invalid, or exceeds {_MAX_NAMES:,} names")
        names = sorted(key for key in keys if isinstance(key, str) and _NAME.match(key) and wanted(key))
        found: dict[str, StoredSecret] = {}
        errors: list[SecretsError] = []
        waiting = iter(names)

        async def read_next() -> None:
            for name in waiting:
                try:
                    stored = await self.read(name)
                except (VaultDenied, VaultMalformed):
                    continue
                except SecretsError as error:
                    errors.append(error)
                    return
                if stored is not None:
                    found[name] = stored

        async with anyio.create_task_group() as tasks:
            for _ in range(_REQUESTS):
                tasks.start_soon(read_next)
        if errors:
            raise errors[0]
        return tuple(found[name] for name in sorted(found))

    def _path(self, kind: str, name: str) -> str:
        return "/".join(part for part in (self.config.mount, kind, self.config.prefix, name) if part)

    def _stored(self, name: str, fields: Mapping[str, Any], metadata: Mapping[str, Any]) -> StoredSecret:
        settings = self.config.secrets.get(name, VaultSecret())
        origins = settings.origins if "origins" in settings.model_fields_set else _origins(fields.get("origins"))
        headers = settings.headers if "headers" in settings.model_fields_set else _headers(fields.get("headers"))
        value = _value(fields, settings.field)
        version, created = metadata.get("version"), metadata.get("created_time")
        if value is None or type(version) is not int or not isinstance(created, str):
            raise VaultMalformed(self.client.address, f"`{name}` has no text field `{settings.field}`")
        try:
            checked = SecretSetParams.model_validate(
                {"name": name, "value": value, "origins": origins, "headers": headers}
            )
        except ValidationError as error:
            where = ", ".join(sorted({str(one["loc"][0]) for one in error.errors(include_input=False)}))
            raise VaultMalformed(self.client.address, f"`{name}` has invalid {where}") from None
        return StoredSecret(
            name=name,
            value=value.encode() if isinstance(value, str) else value,
            text=isinstance(value, str),
            origins=tuple(dict.fromkeys(checked.origins)),
            headers=tuple(checked.headers.items()),
            updated=re.sub(r"\.\d+", "", created)[:40],
            version=version,
        )


async def find_token(config: VaultConfig, address: str, own: Callable[[str], Awaitable[StoredSecret | None]]) -> str:
    """Return the token for the server from its configured location.

    Args:
        own: reads a secret of the local store.

    Raises:
        VaultTokenMissing: if the location contains no valid token.
        SecretAudience: if the secret that contains the token is not bound to the server.
    """
    settings = config.token
    if settings.handle is not None:
        stored = await own(settings.handle)
        if stored is not None and address not in stored.origins:
            raise SecretAudience(settings.handle, address, stored.origins)
        found, where = (stored.value if stored else b""), f"the secret `{settings.handle}`"
    elif settings.file is not None:
        path = settings.file.expanduser()
        found = await to_thread.run_sync(partial(_read, path))
        where = f"the file `{path}`"
    else:
        variable = settings.variable or "VAULT_TOKEN"
        found, where = os.environb.get(os.fsencode(variable), b""), f"the variable `{variable}`"
    token = found.decode("latin-1").strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise VaultTokenMissing(address, f"{where} does not contain a token")
    return token


def _read(path: Path) -> bytes:
    return read_private(path, max_bytes=_MAX_TOKEN_FILE_BYTES) or b""


def _value(fields: Mapping[str, Any], name: str) -> str | bytes | None:
    if isinstance(value := fields.get(name), str):
        return value
    try:
        return base64.b64decode(fields["base64"], validate=True) if name not in fields else None
    except (KeyError, TypeError, ValueError, binascii.Error):
        return None


def _origins(value: Any) -> Any:
    """Convert a list of origins; text may separate them by commas or white space, as forms and command lines do."""
    if value is None:
        return ()
    return [one for one in re.split(r"[\s,]+", value) if one] if isinstance(value, str) else value


def _headers(value: Any) -> Any:
    if value is None:
        return {}
    if isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value
