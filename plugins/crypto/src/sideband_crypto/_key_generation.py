"""Generates keys, and stores them as secrets."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sideband.ops import OpContext

from ._errors import CryptoValue
from ._key_material import audience_of
from ._models import CreatedKey, CreateKeyParams, GeneratedKey, KeyKind
from ._state import Work

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    Private = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey

_SIGNING = ("sign", "verify")
_USES = {
    "bytes": (
        "aes_cbc_decrypt",
        "aes_cbc_encrypt",
        "aes_gcm_decrypt",
        "aes_gcm_encrypt",
        "hkdf",
        "hmac",
        "hmac_verify",
    ),
    "ecdsa": _SIGNING,
    "ed25519": _SIGNING,
    "rsa": (*_SIGNING, "rsa_oaep_decrypt", "rsa_oaep_encrypt"),
}


def generate(kind: KeyKind) -> GeneratedKey:
    """Generate a key of the given kind."""
    if kind.startswith("bytes-"):
        return GeneratedKey(key=secrets.token_bytes(int(kind.removeprefix("bytes-"))))
    return _as_pem(_private(kind))


async def store_new_key(params: CreateKeyParams, ctx: OpContext) -> CreatedKey:
    """Generate a key, and store it as a secret that only the named ops can use."""
    uses = _uses_of(params.kind, params.ops)
    work: Work = ctx.state
    made = await work.run(ctx, lambda: generate(params.kind))
    text = made.key.decode() if made.public is not None else f"hex:{made.key.hex()}"
    origins = [audience_of(f"crypto.{use}") for use in uses]
    ctx.protect(made.key, params.handle, origins=origins)
    await ctx.dispatch("secrets.set", {"name": params.handle, "value": text, "origins": origins})
    return CreatedKey(handle=params.handle, public=made.public)


def _uses_of(kind: KeyKind, ops: Iterable[str]) -> tuple[str, ...]:
    """Return the ops that a key will be bound to, without duplicates.

    Raises:
        CryptoValue: if an op does not support keys of this kind.
    """
    possible = _USES[kind.partition("-")[0]]
    for one in ops:
        if one not in possible:
            raise CryptoValue(f"keys of kind `{kind}` do not support `{one}`", hint=f"use {', '.join(possible)}")
    return tuple(dict.fromkeys(ops))


def _private(kind: str) -> Private:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if kind == "ed25519":
        return ed25519.Ed25519PrivateKey.generate()
    if kind.startswith("ecdsa-"):
        return ec.generate_private_key(ec.SECP256R1() if kind.endswith("p256") else ec.SECP384R1())
    return rsa.generate_private_key(65537, int(kind.removeprefix("rsa-")))


def _as_pem(key: Private) -> GeneratedKey:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    return GeneratedKey(key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), public=public)
