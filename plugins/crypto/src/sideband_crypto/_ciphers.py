"""Encrypts and decrypts: AES-GCM, AES-CBC and RSA-OAEP."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from sideband.ops import OpContext

from ._digests import library_digest
from ._errors import CryptoDecryption, CryptoTooLarge, CryptoValue
from ._key_material import key_bytes
from ._key_reading import aes_key, private_key, public_key
from ._limits import check_length, check_size
from ._models import (
    AesCbcDecryptParams,
    AesCbcEncryptParams,
    AesCbcText,
    AesGcmDecryptParams,
    AesGcmEncryptParams,
    AesGcmText,
    OaepParams,
)
from ._state import Work, is_quick

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.padding import OAEP

_BLOCK = 16
_NONCE = 12
_LONGEST_NONCE = 16


async def encrypt_gcm(params: AesGcmEncryptParams, ctx: OpContext) -> AesGcmText:
    """Encrypt with AES-GCM, so that any change is noticed."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    work: Work = ctx.state
    check_size(work.config, params.data, params.associated_data)
    nonce = _own_nonce("nonce", params.nonce, params.handle, _NONCE, _LONGEST_NONCE)
    cipher = AESGCM(aes_key(await key_bytes(ctx, params.key, params.handle), params.handle))

    def run() -> bytes:
        return cipher.encrypt(nonce, params.data, params.associated_data)

    quick = is_quick(params.data, params.associated_data)
    return AesGcmText(nonce=nonce, ciphertext=run() if quick else await work.run(ctx, run))


async def decrypt_gcm(params: AesGcmDecryptParams, ctx: OpContext) -> bytes:
    """Decrypt what AES-GCM encrypted, if nothing of it was changed."""
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


async def encrypt_cbc(params: AesCbcEncryptParams, ctx: OpContext) -> AesCbcText:
    """Encrypt with AES-CBC and PKCS7 padding."""
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


async def decrypt_cbc(params: AesCbcDecryptParams, ctx: OpContext) -> bytes:
    """Decrypt what AES-CBC encrypted with PKCS7 padding."""
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


async def encrypt_oaep(params: OaepParams, ctx: OpContext) -> bytes:
    """Encrypt something short with RSA-OAEP."""
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


async def decrypt_oaep(params: OaepParams, ctx: OpContext) -> bytes:
    """Decrypt what RSA-OAEP encrypted."""
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
