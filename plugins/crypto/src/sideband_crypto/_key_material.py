"""Returns the bytes of a key: passed by the caller, or stored in the host for this op."""

from __future__ import annotations

import base64
import binascii

from sideband.ops import OpContext

from ._errors import CryptoKey


def audience_of(op: str) -> str:
    """Return the origin that a secret must be bound to for the op to use it as key.

    Example:
        >>> audience_of("crypto.sign")
        'op://crypto.sign'
    """
    return f"op://{op}"


async def key_bytes(ctx: OpContext, key: bytes | None, handle: str | None) -> bytes:
    """Return the key. A stored key never leaves the op that uses it.

    Raises:
        OpDenied: if the grant does not allow using the secret.
        OpFailed: if the secret does not exist, or is not bound to this op.
        CryptoKey: if the stored key has a prefix but is not encoded accordingly.
    """
    if handle is None:
        return key or b""
    credential = await ctx.credential(handle, audience_of(ctx.op))
    raw = _decoded(handle, credential.value)
    # register the decoded form, which differs from the stored one, with the redactor
    ctx.protect(raw, handle, origins=credential.origins)
    return raw


def _decoded(handle: str, text: str) -> bytes:
    """Decode a stored key, which may have the prefix ``base64:`` or ``hex:``."""
    encoding, colon, rest = text.partition(":")
    try:
        if colon and encoding == "base64":
            return base64.b64decode(rest.strip(), validate=True)
        if colon and encoding == "hex":
            return bytes.fromhex(rest)
    except (ValueError, binascii.Error):
        raise CryptoKey(
            f"begins with `{encoding}:` but is not valid {encoding}",
            handle=handle,
            hint="store it again; only the encoded bytes may follow the colon",
        ) from None
    return text.encode()
