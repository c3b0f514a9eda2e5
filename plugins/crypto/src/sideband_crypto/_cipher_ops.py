"""The ops that encrypt and decrypt: `crypto.aes_gcm_…`, `crypto.aes_cbc_…` and `crypto.rsa_oaep_…`."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from sideband.ops import Level, OpContext, op

from ._digests import library_digest
from ._errors import CryptoDecryption, CryptoTooLarge, CryptoValue
from ._keys import aes_key, private_key, public_key
from ._limits import check_length, check_size
from ._material import key_bytes
from ._models import (
    AesCbcDecryptParams,
    AesCbcEncryptParams,
    AesCbcText,
    AesGcmDecryptParams,
    AesGcmEncryptParams,
    AesGcmText,
    OaepParams,
)
from ._scope import NO_SECRET, CryptoScope
from ._work import Work, is_quick

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.padding import OAEP

__all__ = [
    "aes_cbc_decrypt",
    "aes_cbc_encrypt",
    "aes_gcm_decrypt",
    "aes_gcm_encrypt",
    "rsa_oaep_decrypt",
    "rsa_oaep_encrypt",
]

_BLOCK = 16
_NONCE = 12
_LONGEST_NONCE = 16


@op(
    "crypto.aes_gcm_encrypt",
    requires="crypto",
    scope=lambda params: CryptoScope(op="aes_gcm_encrypt", key=params.handle or NO_SECRET),
    level=Level.SAFE,
    record=("handle",),
)
async def aes_gcm_encrypt(params: AesGcmEncryptParams, ctx: OpContext) -> AesGcmText:
    """Encrypt with AES-GCM, so that any change is noticed.

    Args:
        params: `data`; `key` of 16, 24 or 32 bytes, or `handle`, a secret that is bound to
            `op://crypto.aes_gcm_encrypt`; `associated_data` is not encrypted, but any change to it is noticed;
            `nonce` of 12 to 16 bytes is only for a format that prescribes it, and only with a `key` of your own: two
            texts with one nonce give both away, so that a new one is made.
        ctx: the dispatch.

    Returns:
        The nonce, and the encrypted text with its tag behind it.

    Raises:
        CryptoKey: the key has another length.
        CryptoValue: the nonce has another length, or stands beside a stored key.
        CryptoTooLarge: the data are longer than `max_bytes`.

    Example:
        ``{"data": "hello", "handle": "backup"}``
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    work: Work = ctx.state
    check_size(work.config, params.data, params.associated_data)
    nonce = _own_nonce("nonce", params.nonce, params.handle, _NONCE, _LONGEST_NONCE)
    cipher = AESGCM(aes_key(await key_bytes(ctx, params.key, params.handle), params.handle))

    def run() -> bytes:
        return cipher.encrypt(nonce, params.data, params.associated_data)

    quick = is_quick(params.data, params.associated_data)
    return AesGcmText(nonce=nonce, ciphertext=run() if quick else await work.run(ctx, run))


@op(
    "crypto.aes_gcm_decrypt",
    requires="crypto",
    scope=lambda params: CryptoScope(op="aes_gcm_decrypt", key=params.handle or NO_SECRET),
    level=Level.SAFE,
    record=("handle",),
)
async def aes_gcm_decrypt(params: AesGcmDecryptParams, ctx: OpContext) -> bytes:
    """Decrypt what AES-GCM encrypted, if nothing of it was changed.

    Args:
        params: `nonce`, `ciphertext` with the tag of 16 bytes behind it, and `associated_data` as they were; `key`, or
            `handle`, a secret that is bound to `op://crypto.aes_gcm_decrypt`.
        ctx: the dispatch.

    Returns:
        The text as bytes.

    Raises:
        CryptoDecryption: it was changed, or encrypted otherwise; which of them is not said.
        CryptoKey: the key has another length.
        CryptoValue: the nonce has another length.
        CryptoTooLarge: the data are longer than `max_bytes`.

    Example:
        ``{"nonce": {"__bytes__": "…"}, "ciphertext": {"__bytes__": "…"}, "handle": "backup"}``
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    work: Work = ctx.state
    check_size(work.config, params.ciphertext, params.associated_data)
    check_length("nonce", params.nonce, _NONCE, _LONGEST_NONCE)
    cipher = AESGCM(aes_key(await key_bytes(ctx, params.key, params.handle), params.handle))

    def run() -> bytes:
        try:
            return cipher.decrypt(params.nonce, params.ciphertext, params.associated_data)
        except InvalidTag:
            raise CryptoDecryption from None

    return run() if is_quick(params.ciphertext, params.associated_data) else await work.run(ctx, run)


@op(
    "crypto.aes_cbc_encrypt",
    requires="crypto",
    scope=lambda params: CryptoScope(op="aes_cbc_encrypt", key=params.handle or NO_SECRET),
    level=Level.SAFE,
    record=("handle",),
)
async def aes_cbc_encrypt(params: AesCbcEncryptParams, ctx: OpContext) -> AesCbcText:
    """Encrypt with AES-CBC and PKCS7 padding, for formats that demand it. Nobody notices changes: prefer AES-GCM.

    Args:
        params: `data`; `key` of 16, 24 or 32 bytes, or `handle`, a secret that is bound to
            `op://crypto.aes_cbc_encrypt`; `iv` of 16 bytes is only for a format that prescribes it, and only with a
            `key` of your own; there is no default but a new one.
        ctx: the dispatch.

    Returns:
        The initialization vector and the encrypted text.

    Raises:
        CryptoKey: the key has another length.
        CryptoValue: the initialization vector has another length, or stands beside a stored key.
        CryptoTooLarge: the data are longer than `max_bytes`.

    Example:
        ``{"data": "hello", "key": {"__bytes__": "…"}}``
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.padding import PKCS7

    work: Work = ctx.state
    check_size(work.config, params.data)
    iv = _own_nonce("iv", params.iv, params.handle, _BLOCK, _BLOCK)
    key = aes_key(await key_bytes(ctx, params.key, params.handle), params.handle)

    def run() -> bytes:
        padder = PKCS7(_BLOCK * 8).padder()
        encryptor = Cipher(algorithms.AES(key), modes.CBC(iv)).encryptor()
        return encryptor.update(padder.update(params.data) + padder.finalize()) + encryptor.finalize()

    return AesCbcText(iv=iv, ciphertext=run() if is_quick(params.data) else await work.run(ctx, run))


@op(
    "crypto.aes_cbc_decrypt",
    requires="crypto",
    scope=lambda params: CryptoScope(op="aes_cbc_decrypt", key=params.handle or NO_SECRET),
    level=Level.SAFE,
    record=("handle",),
)
async def aes_cbc_decrypt(params: AesCbcDecryptParams, ctx: OpContext) -> bytes:
    """Decrypt what AES-CBC encrypted with PKCS7 padding. Changes are not noticed: check an HMAC first.

    Args:
        params: `iv` of 16 bytes and `ciphertext` as they were; `key`, or `handle`, a secret that is bound to
            `op://crypto.aes_cbc_decrypt`.
        ctx: the dispatch.

    Returns:
        The text as bytes.

    Raises:
        CryptoDecryption: it can't be decrypted; why is not said.
        CryptoKey: the key has another length.
        CryptoValue: the initialization vector has another length.
        CryptoTooLarge: the data are longer than `max_bytes`.

    Example:
        ``{"iv": {"__bytes__": "…"}, "ciphertext": {"__bytes__": "…"}, "key": {"__bytes__": "…"}}``
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.padding import PKCS7

    work: Work = ctx.state
    check_size(work.config, params.ciphertext)
    check_length("iv", params.iv, _BLOCK, _BLOCK)
    key = aes_key(await key_bytes(ctx, params.key, params.handle), params.handle)

    def run() -> bytes:
        try:
            decryptor = Cipher(algorithms.AES(key), modes.CBC(params.iv)).decryptor()
            padded = decryptor.update(params.ciphertext) + decryptor.finalize()
            unpadder = PKCS7(_BLOCK * 8).unpadder()
            return unpadder.update(padded) + unpadder.finalize()
        except ValueError:
            raise CryptoDecryption from None

    return run() if is_quick(params.ciphertext) else await work.run(ctx, run)


@op(
    "crypto.rsa_oaep_encrypt",
    requires="crypto",
    scope=lambda params: CryptoScope(op="rsa_oaep_encrypt", key=params.handle or NO_SECRET),
    level=Level.SAFE,
    record=("algorithm", "handle"),
)
async def rsa_oaep_encrypt(params: OaepParams, ctx: OpContext) -> bytes:
    """Encrypt something short, such as a key, with RSA-OAEP, for whoever has the private key.

    Args:
        params: `data`; `key` is the public key (PEM or DER, 2048 to 8192 bits), or `handle`, a secret that is bound to
            `op://crypto.rsa_oaep_encrypt`; `algorithm` is the digest (of the mask too), `sha256` unless told; `label`.
        ctx: the dispatch.

    Returns:
        The encrypted text.

    Raises:
        CryptoKey: it is no key of RSA that can be used.
        CryptoTooLarge: the data do not fit in one block of the key.

    Example:
        ``{"data": {"__bytes__": "…"}, "key": "-----BEGIN PUBLIC KEY-----…"}``
    """
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    raw = await key_bytes(ctx, params.key, params.handle)

    def run() -> bytes:
        key = public_key(raw, "rsa-oaep", params.handle)
        assert isinstance(key, RSAPublicKey)  # noqa: S101  checked by scheme
        most = key.key_size // 8 - 2 * library_digest(params.algorithm).digest_size - 2
        if len(params.data) > most:
            raise CryptoTooLarge(
                f"{len(params.data):,} bytes do not fit: this key and digest encrypt {most} at most",
                hint="encrypt the data with AES-GCM, and the key for it with RSA-OAEP",
            )
        return key.encrypt(params.data, _oaep(params))

    work: Work = ctx.state
    return await work.run(ctx, run)


@op(
    "crypto.rsa_oaep_decrypt",
    requires="crypto",
    scope=lambda params: CryptoScope(op="rsa_oaep_decrypt", key=params.handle or NO_SECRET),
    level=Level.SAFE,
    record=("algorithm", "handle"),
)
async def rsa_oaep_decrypt(params: OaepParams, ctx: OpContext) -> bytes:
    """Decrypt what RSA-OAEP encrypted.

    Args:
        params: `data` is the encrypted text; `key` the private key (PEM or DER, 2048 to 8192 bits), or `handle`, a
            secret that is bound to `op://crypto.rsa_oaep_decrypt`; `algorithm` and `label` as they were.
        ctx: the dispatch.

    Returns:
        The text as bytes.

    Raises:
        CryptoDecryption: it can't be decrypted; why is not said.
        CryptoKey: it is no key of RSA that can be used.

    Example:
        ``{"data": {"__bytes__": "…"}, "handle": "inbox"}``
    """
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    raw = await key_bytes(ctx, params.key, params.handle)

    def run() -> bytes:
        key = private_key(raw, "rsa-oaep", params.handle)
        assert isinstance(key, RSAPrivateKey)  # noqa: S101  checked by scheme
        try:
            return key.decrypt(params.data, _oaep(params))
        except ValueError:
            raise CryptoDecryption from None

    work: Work = ctx.state
    return await work.run(ctx, run)


def _oaep(params: OaepParams) -> OAEP:
    from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP

    digest = library_digest(params.algorithm)
    return OAEP(MGF1(digest), digest, params.label or None)


def _own_nonce(name: str, given: bytes | None, handle: str | None, least: int, most: int) -> bytes:
    """The nonce of an encryption. With a stored key it is never the caller's: one that comes twice gives texts away."""
    if given is None:
        return secrets.token_bytes(least)
    if handle is not None:
        raise CryptoValue(
            f"`{name}` can't be chosen for a stored key", hint=f"leave `{name}` out; a new one is made and returned"
        )
    check_length(name, given, least, most)
    return given
