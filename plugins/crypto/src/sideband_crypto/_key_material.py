"""From parameters to the bytes of a key: what the caller brought, or what the host keeps for this op."""

from __future__ import annotations

import base64
import binascii

from sideband.ops import OpContext

from ._errors import CryptoKey


def audience_of(op: str) -> str:
    """What a secret must be bound to for the op to use it as its key.

    Example:
        >>> audience_of("crypto.sign")
        'op://crypto.sign'
    """
    return f"op://{op}"


async def key_bytes(ctx: OpContext, key: bytes | None, handle: str | None) -> bytes:
    """The key. A stored one is never handed out: it does not leave the op that uses it.

    Raises:
        OpDenied: the grant does not have the right to use the secret.
        OpFailed: there is no such secret, or it is not bound to this op.
        CryptoKey: it is said to be encoded, and is not.
    """
    if handle is None:
        return key or b""
    credential = await ctx.credential(handle, audience_of(ctx.op))
    raw = _decoded(handle, credential.value)
    # as it is used it looks otherwise than as it is stored
    ctx.protect(raw, handle, origins=credential.origins)
    return raw


def _decoded(handle: str, text: str) -> bytes:
    """Bytes are stored as text that says so: ``base64:…`` or ``hex:…``."""
    encoding, colon, rest = text.partition(":")
    try:
        if colon and encoding == "base64":
            return base64.b64decode(rest.strip(), validate=True)
        if colon and encoding == "hex":
            return bytes.fromhex(rest)
    except (ValueError, binascii.Error):
        raise CryptoKey(
            f"begins with `{encoding}:` and is not {encoding}",
            handle=handle,
            hint="store it again; what stands behind the colon must be the encoded bytes alone",
        ) from None
    return text.encode()
