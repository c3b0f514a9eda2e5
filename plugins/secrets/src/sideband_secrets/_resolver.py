"""Resolves a handle to a credential, only for the origins that the secret is bound to."""

from __future__ import annotations

import base64
import re

from sideband.ops import Credential, OpContext

from ._backends import StoredSecret
from ._errors import SecretAudience, SecretBinary, SecretUnusable
from ._origins import normal_origin
from ._state import secrets_of

_PLACEHOLDER = re.compile(r"\{(value|base64)\}")


class SecretResolver:
    """The ``CredentialResolver`` of the family. The host checks `secrets:name=HANDLE,mode=use` before it calls this."""

    async def resolve(self, handle: str, audience: str, ctx: OpContext) -> Credential:
        """Return the credential for one audience.

        Args:
            handle: the secret's name.
            audience: an origin; its scheme, host and port must match an origin that the secret is bound to.
            ctx: the context of the requesting op, with this plugin's ``state``.

        Raises:
            SecretMissing: if the secret does not exist.
            SecretAudience: if it is bound to other origins.
            SecretBinary: if its value is not text.
            SecretUnusable: if its value is not valid in the configured header.
        """
        stored = await secrets_of(ctx).read(handle, ctx, audience=audience)
        if _origin(audience) not in stored.origins:
            raise SecretAudience(handle, audience, stored.origins)
        if not stored.text:
            raise SecretBinary(handle)
        headers = {name: _filled(stored, name, template) for name, template in stored.headers}
        for header in headers.values():
            ctx.protect(header, handle, origins=stored.origins)
        return Credential(handle=handle, value=stored.value.decode(), headers=headers, origins=stored.origins)


def _origin(audience: str) -> str | None:
    try:
        return normal_origin(audience)
    except ValueError:
        return None


def _filled(stored: StoredSecret, name: str, template: str) -> str:
    values = {"value": stored.value.decode(), "base64": base64.b64encode(stored.value).decode()}
    filled = _PLACEHOLDER.sub(lambda found: values[found[1]], template)
    if not (filled.isascii() and filled.isprintable()):
        raise SecretUnusable(stored.name, name)
    return filled
