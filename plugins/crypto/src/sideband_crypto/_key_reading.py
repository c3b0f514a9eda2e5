"""Reads keys, and refuses those that would make an algorithm unsafe."""

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
_LARGEST_EXPONENT = 1 << 64
_RSA_SCHEMES = ("rsa-oaep", "rsa-pkcs1v15", "rsa-pss")
_CURVES = ("secp256r1", "secp384r1")
_PRIME = 2**255 - 19
# The y of all points of the curve whose order divides 8: a signature of such a key fits any text.
_ORDER_8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022
_SMALL_ORDER = frozenset([0, 1, _PRIME - 1, _ORDER_8, _PRIME - _ORDER_8])
_FORMS = "a private key is PEM or DER without a passphrase; Ed25519 also 32 bytes"
_PUBLIC_FORMS = "a public key is PEM or DER; Ed25519 also 32 bytes"


def aes_key(raw: bytes, handle: str | None) -> bytes:
    """``raw``, if it is a key of AES.

    Raises:
        CryptoKey: it has another length.
    """
    if len(raw) not in {16, 24, 32}:
        raise CryptoKey(
            f"has {len(raw)} bytes",
            handle=handle,
            hint="AES takes 16, 24 or 32 bytes; store them as `base64:…` or `hex:…`, derive them from a password",
        )
    return raw


def private_key(raw: bytes, scheme: str, handle: str | None) -> Private:
    """The private key for signatures or decryption of this scheme (``ed25519``, ``ecdsa``, ``rsa-…``).

    Raises:
        CryptoKey: it can't be read, is of another kind, or too weak.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    if scheme == "ed25519" and len(raw) == _RAW_ED25519:
        return ed25519.Ed25519PrivateKey.from_private_bytes(raw)
    load = serialization.load_pem_private_key if _is_pem(raw) else serialization.load_der_private_key
    try:
        # the library's own check of RSA keys looks for primes, for seconds, and lets no other thread run meanwhile
        found = load(raw, None, unsafe_skip_rsa_key_validation=True)
    except Exception:  # noqa: BLE001  the errors of the library quote what they read
        raise CryptoKey("is no private key that can be read", handle=handle, hint=_FORMS) from None
    return _checked_private(found, scheme, handle)


def public_key(raw: bytes, scheme: str, handle: str | None) -> Public:
    """The public key for this scheme; that of a private key, if one is given.

    Raises:
        CryptoKey: it can't be read, is of another kind, too weak, or fits any signature.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    if scheme == "ed25519" and len(raw) == _RAW_ED25519:
        _refuse_small_order(raw, handle)
        return ed25519.Ed25519PublicKey.from_public_bytes(raw)
    load = serialization.load_pem_public_key if _is_pem(raw) else serialization.load_der_public_key
    try:
        found = load(raw)
    except Exception:  # noqa: BLE001  it may be a private key; else that says what is wrong
        try:
            return private_key(raw, scheme, handle).public_key()
        except CryptoKey as error:
            if "can be read" in error.message:
                raise CryptoKey("is no key that can be read", handle=handle, hint=_PUBLIC_FORMS) from None
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
        if not _belong_together(found.private_numbers()):
            raise CryptoKey("has parts that do not belong together", handle=handle, hint="generate another one")
        return found
    raise _another_kind(scheme, handle)


def _checked_public(found: object, scheme: str, handle: str | None) -> Public:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if scheme == "ed25519" and isinstance(found, ed25519.Ed25519PublicKey):
        _refuse_small_order(found.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw), handle)
        return found
    if scheme == "ecdsa" and isinstance(found, ec.EllipticCurvePublicKey):
        _check_curve(found.curve.name, handle)
        return found
    if scheme in _RSA_SCHEMES and isinstance(found, rsa.RSAPublicKey):
        _check_rsa(found.public_numbers(), handle)
        return found
    raise _another_kind(scheme, handle)


def _another_kind(scheme: str, handle: str | None) -> CryptoKey:
    return CryptoKey(f"is of another kind than `{scheme}` takes", handle=handle, hint="name the scheme of the key")


def _check_curve(name: str, handle: str | None) -> None:
    if name not in _CURVES:
        raise CryptoKey("lies on another curve", handle=handle, hint="P-256 and P-384 are possible")


def _check_rsa(numbers: rsa.RSAPublicNumbers, handle: str | None) -> None:
    least, most = _RSA_BITS
    if not least <= numbers.n.bit_length() <= most:
        raise CryptoKey(
            f"has {numbers.n.bit_length()} bits", handle=handle, hint=f"RSA takes {least} to {most} bits here"
        )
    if numbers.e >= _LARGEST_EXPONENT or numbers.e < 3 or numbers.e % 2 == 0 or numbers.n % 2 == 0:
        raise CryptoKey("has numbers that no RSA key has", handle=handle, hint="the usual exponent is 65537")


def _belong_together(numbers: rsa.RSAPrivateNumbers) -> bool:
    """What can be checked without looking for primes. A wrong part would give the key away with one signature."""
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


def _refuse_small_order(raw: bytes, handle: str | None) -> None:
    y = int.from_bytes(raw, "little") & ((1 << 255) - 1)
    if y >= _PRIME or y in _SMALL_ORDER:
        raise CryptoKey("fits signatures of any text", handle=handle, hint="whoever made it means to deceive")
