"""Makes keys."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ._errors import CryptoValue
from ._models import GeneratedKey, KeyKind

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    Private = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey

__all__ = ["generate", "uses_of"]

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
    """A new key of this kind."""
    if kind.startswith("bytes-"):
        return GeneratedKey(key=secrets.token_bytes(int(kind.removeprefix("bytes-"))))
    return _as_pem(_private(kind))


def uses_of(kind: KeyKind, ops: Iterable[str]) -> tuple[str, ...]:
    """The ops that a key is to be bound to, each once.

    Raises:
        CryptoValue: one of them takes no key of this kind.
    """
    possible = _USES[kind.partition("-")[0]]
    for one in ops:
        if one not in possible:
            raise CryptoValue(f"no key of the kind `{kind}` is for `{one}`", hint=f"it is for {', '.join(possible)}")
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
