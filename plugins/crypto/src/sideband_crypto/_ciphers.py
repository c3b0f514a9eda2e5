"""Encryption and decryption: AES-GCM, AES-CBC and RSA-OAEP."""

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
_MAX_NONCE = 16


async def encrypt_gcm(params: AesGcmEncryptParams, ctx: OpContext) -> AesGcmText:
    """Encrypt and authenticate data with AES-GCM."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    work: Work = ctx.state
    check_size(work.config, params.data, params.associated_data)
    nonce = _nonce_for("nonce", params.nonce, params.handle, _NONCE, _MAX_NONCE)
    cipher = AESGCM(aes_key(await key_bytes(ctx, params.key, params.handle), params.handle))

    def run() -> bytes:
        return cipher.encrypt(nonce, params.data, params.associated_data)

    quick = is_quick(params.data, params.associated_data)
    return AesGcmText(nonce=nonce, ciphertext=run() if quick else await work.run(ctx, run))


async def decrypt_gcm(params: AesGcmDecryptParams, ctx: OpContext) -> bytes:
    """Decrypt data encrypted with AES-GCM and verify its integrity."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    work: Work = ctx.state
    check_size(work.config, params.ciphertext, params.associated_data)
    check_length("nonce", params.nonce, _NONCE, _MAX_NONCE)
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
    iv = _nonce_for("iv", params.iv, params.handle, _BLOCK, _BLOCK)
    key = aes_key(await key_bytes(ctx, params.key, params.handle), params.handle)

    def run() -> bytes:
        padder = PKCS7(_BLOCK * 8).padder()
        encryptor = Cipher(algorithms.AES(key), modes.CBC(iv)).encryptor()
        return encryptor.update(padder.update(params.data) + padder.finalize()) + encryptor.finalize()

    return AesCbcText(iv=iv, ciphertext=run() if is_quick(params.data) else await work.run(ctx, run))


async def decrypt_cbc(params: AesCbcDecryptParams, ctx: OpContext) -> bytes:
    """Decrypt data encrypted with AES-CBC and PKCS7 padding."""
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
    """Encrypt short data with RSA-OAEP."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    raw = await key_bytes(ctx, params.key, params.handle)

    def run() -> bytes:
        key = public_key(raw, "rsa-oaep", params.handle)
        assert isinstance(key, RSAPublicKey)  # noqa: S101  ensured by the scheme
        maximum = key.key_size // 8 - 2 * library_digest(params.algorithm).digest_size - 2
        if len(params.data) > maximum:
            raise CryptoTooLarge(
                f"data has {len(params.data):,} bytes; this key and digest encrypt at most {maximum}",
                hint="encrypt the data with AES-GCM, and its key with RSA-OAEP",
            )
        return key.encrypt(params.data, _oaep(params))

    work: Work = ctx.state
    return await work.run(ctx, run)


async def decrypt_oaep(params: OaepParams, ctx: OpContext) -> bytes:
    """Decrypt data encrypted with RSA-OAEP."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    raw = await key_bytes(ctx, params.key, params.handle)

    def run() -> bytes:
        key = private_key(raw, "rsa-oaep", params.handle)
        assert isinstance(key, RSAPrivateKey)  # noqa: S101  ensured by the scheme
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


def _nonce_for(name: str, given: bytes | None, handle: str | None, minimum: int, maximum: int) -> bytes:
    """Return the nonce of an encryption. The caller cannot choose it for a stored key: reuse reveals plaintexts."""
    if given is None:
        return secrets.token_bytes(minimum)
    if handle is not None:
        raise CryptoValue(
            f"`{name}` cannot be chosen for a stored key", hint=f"omit `{name}`; a new one is generated and returned"
        )
    check_length(name, given, minimum, maximum)
    return given
