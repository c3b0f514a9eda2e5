"""Parses keys, and rejects those that would make an algorithm insecure."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from ._errors import CryptoKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    Private = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey
    Public = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey

_PEM = b"-----BEGIN"
_RAW_ED25519 = 32
_RSA_BITS = (2048, 8192)
_MAX_EXPONENT = 1 << 64
_RSA_SCHEMES = ("rsa-oaep", "rsa-pkcs1v15", "rsa-pss")
_CURVES = ("secp256r1", "secp384r1")
_PRIME = 2**255 - 19
# The y coordinates of all points whose order divides 8: for such a key, a signature is valid for any data.
_ORDER_8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022
_SMALL_ORDER = frozenset([0, 1, _PRIME - 1, _ORDER_8, _PRIME - _ORDER_8])
_PRIVATE_FORMATS = "pass PEM or DER without a passphrase, or 32 bytes for Ed25519"
_PUBLIC_FORMATS = "pass a public key as PEM or DER, or 32 bytes for Ed25519"


def aes_key(raw: bytes, handle: str | None) -> bytes:
    """Return ``raw`` if it is a valid AES key.

    Raises:
        CryptoKey: if it has an unsupported length.
    """
    if len(raw) not in {16, 24, 32}:
        raise CryptoKey(
            f"has {len(raw)} bytes",
            handle=handle,
            hint="AES requires 16, 24 or 32 bytes: store them as `base64:…` or `hex:…`, or derive them from a password",
        )
    return raw


def private_key(raw: bytes, scheme: str, handle: str | None) -> Private:
    """Parse a private key for a signature or decryption scheme (``ed25519``, ``ecdsa``, ``rsa-…``).

    Raises:
        CryptoKey: if it is unreadable, of another kind, or too weak.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    if scheme == "ed25519" and len(raw) == _RAW_ED25519:
        return ed25519.Ed25519PrivateKey.from_private_bytes(raw)
    load = serialization.load_pem_private_key if _is_pem(raw) else serialization.load_der_private_key
    try:
        # the library's check of RSA keys tests for primes, which takes seconds and holds the GIL
        found = load(raw, None, unsafe_skip_rsa_key_validation=True)
    except Exception:  # noqa: BLE001  the library's errors quote their input
        raise CryptoKey("is not a readable private key", handle=handle, hint=_PRIVATE_FORMATS) from None
    return _checked_private(found, scheme, handle)


def public_key(raw: bytes, scheme: str, handle: str | None) -> Public:
    """Parse a public key for this scheme, or return the public key of a private one.

    Raises:
        CryptoKey: if it is unreadable, of another kind, too weak, or accepts signatures of any data.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    if scheme == "ed25519" and len(raw) == _RAW_ED25519:
        _check_order(raw, handle)
        return ed25519.Ed25519PublicKey.from_public_bytes(raw)
    load = serialization.load_pem_public_key if _is_pem(raw) else serialization.load_der_public_key
    try:
        found = load(raw)
    except Exception:  # noqa: BLE001  it may be a private key; otherwise parsing that reports the error
        try:
            return private_key(raw, scheme, handle).public_key()
        except CryptoKey as error:
            if "readable" in error.message:
                raise CryptoKey("is not a readable key", handle=handle, hint=_PUBLIC_FORMATS) from None
            raise
    return _checked_public(found, scheme, handle)


def _is_pem(raw: bytes) -> bool:
    return raw.lstrip().startswith(_PEM)


def _checked_private(found: object, scheme: str, handle: str | None) -> Private:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if scheme == "ed25519" and isinstance(found, ed25519.Ed25519PrivateKey):
        return found
    if scheme == "ecdsa" and isinstance(found, ec.EllipticCurvePrivateKey):
        _check_curve(found.curve.name, handle)
        return found
    if scheme in _RSA_SCHEMES and isinstance(found, rsa.RSAPrivateKey):
        _check_rsa(found.public_key().public_numbers(), handle)
        if not _is_consistent(found.private_numbers()):
            raise CryptoKey("has inconsistent numbers", handle=handle, hint="generate another key")
        return found
    raise _wrong_kind(scheme, handle)


def _checked_public(found: object, scheme: str, handle: str | None) -> Public:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if scheme == "ed25519" and isinstance(found, ed25519.Ed25519PublicKey):
        _check_order(found.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw), handle)
        return found
    if scheme == "ecdsa" and isinstance(found, ec.EllipticCurvePublicKey):
        _check_curve(found.curve.name, handle)
        return found
    if scheme in _RSA_SCHEMES and isinstance(found, rsa.RSAPublicKey):
        _check_rsa(found.public_numbers(), handle)
        return found
    raise _wrong_kind(scheme, handle)


def _wrong_kind(scheme: str, handle: str | None) -> CryptoKey:
    return CryptoKey(f"is not a key for `{scheme}`", handle=handle, hint="pass the algorithm that matches the key")


def _check_curve(name: str, handle: str | None) -> None:
    if name not in _CURVES:
        raise CryptoKey("has an unsupported curve", handle=handle, hint="use P-256 or P-384")


def _check_rsa(numbers: rsa.RSAPublicNumbers, handle: str | None) -> None:
    minimum, maximum = _RSA_BITS
    if not minimum <= numbers.n.bit_length() <= maximum:
        raise CryptoKey(
            f"has {numbers.n.bit_length()} bits", handle=handle, hint=f"use an RSA key of {minimum} to {maximum} bits"
        )
    if numbers.e >= _MAX_EXPONENT or numbers.e < 3 or numbers.e % 2 == 0 or numbers.n % 2 == 0:
        raise CryptoKey("has an invalid modulus or exponent", handle=handle, hint="generate another key")


def _is_consistent(numbers: rsa.RSAPrivateNumbers) -> bool:
    """Return whether the numbers are consistent, without testing for primes. Using a wrong one leaks the key."""
    p, q, d = numbers.p, numbers.q, numbers.d
    if min(p, q) < 3 or p == q or p * q != numbers.public_numbers.n:
        return False
    order = (p - 1) * (q - 1) // gcd(p - 1, q - 1)
    return (
        (numbers.public_numbers.e * d) % order == 1
        and numbers.dmp1 == d % (p - 1)
        and numbers.dmq1 == d % (q - 1)
        and 0 < numbers.iqmp < p
        and (numbers.iqmp * q) % p == 1
    )


def _check_order(raw: bytes, handle: str | None) -> None:
    y = int.from_bytes(raw, "little") & ((1 << 255) - 1)
    if y >= _PRIME or y in _SMALL_ORDER:
        raise CryptoKey(
            "accepts signatures of any data", handle=handle, hint="do not use this key; it was made to deceive"
        )
