"""The ops of the family `crypto`."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Iterable
from typing import Any

from sideband.ops import Level, OpContext, OpSpec, op

from ._ciphers import decrypt_cbc, decrypt_gcm, decrypt_oaep, encrypt_cbc, encrypt_gcm, encrypt_oaep
from ._derivation import derive_hkdf, derive_pbkdf2, derive_scrypt
from ._digests import authenticate, digest_data
from ._key_generation import generate, store_new_key
from ._limits import check_size
from ._models import (
    AesCbcDecryptParams,
    AesCbcEncryptParams,
    AesCbcText,
    AesGcmDecryptParams,
    AesGcmEncryptParams,
    AesGcmText,
    CompareParams,
    CreatedKey,
    CreateKeyParams,
    GeneratedKey,
    GenerateKeyParams,
    HashParams,
    HkdfParams,
    HmacParams,
    HmacVerifyParams,
    OaepParams,
    Pbkdf2Params,
    RandomParams,
    ScryptParams,
    SignParams,
    VerifyParams,
)
from ._scope import scope_of
from ._signatures import sign, verify
from ._state import Work


def _op(name: str, *, level: Level = Level.SAFE, record: Iterable[str] = ()) -> Callable[[Any], OpSpec]:
    """Declare an op. All ops only compute, except `create_key`, which also stores a secret."""
    verb = name.partition(".")[2]
    needs = {"op": (verb,)}
    return op(name, requires="crypto", scope=scope_of(verb), level=level, needs=needs, record=record, egress=False)


@_op("crypto.hash", record=("algorithm", "legacy"))
async def hash_data(params: HashParams, ctx: OpContext) -> bytes:
    """Return the digest of data.

    Args:
        params: `data` is text or bytes; `algorithm` is one of `sha256` (the default), `sha384`, `sha512`, `sha224`,
            `sha3_256`, `sha3_384`, `sha3_512`, `blake2b`, `blake2s`, and with `legacy` also `sha1` and `md5`.
        ctx: the op's context.

    Returns:
        The digest as bytes.

    Raises:
        CryptoLegacy: if the algorithm is broken and `legacy` is false.
        CryptoTooLarge: if the data exceeds `max_bytes`.

    Example:
        ``{"data": "hello", "algorithm": "sha3_256"}``
    """
    return await digest_data(params, ctx)


@_op("crypto.hmac", record=("algorithm", "legacy", "handle"))
async def hmac_data(params: HmacParams, ctx: OpContext) -> bytes:
    """Return the HMAC of data, which proves that its sender knows the key.

    Args:
        params: `data`; `algorithm` as for `crypto.hash` (without `blake2b` and `blake2s`, which have their own keyed
            mode); `key`, text or bytes, or `handle`, the name of a secret that is bound to `op://crypto.hmac`.
        ctx: the op's context.

    Returns:
        The HMAC as bytes. To check a received one, use `crypto.hmac_verify`.

    Raises:
        CryptoLegacy: if the algorithm is broken and `legacy` is false.
        CryptoTooLarge: if the data exceeds `max_bytes`.
        CryptoKey: if the stored key is not encoded as its prefix states.

    Example:
        ``{"data": "the body", "handle": "webhook"}``
    """
    return await authenticate(params, ctx)


@_op("crypto.hmac_verify", record=("algorithm", "legacy", "handle"))
async def hmac_verify(params: HmacVerifyParams, ctx: OpContext) -> bool:
    """Verify an HMAC in constant time. A key that is bound to this op only cannot be used to compute one.

    Args:
        params: `mac` is the whole HMAC as bytes (a truncated one is invalid); the other parameters as for
            `crypto.hmac`; a secret must be bound to `op://crypto.hmac_verify`.
        ctx: the op's context.

    Returns:
        Whether it is valid.

    Raises:
        CryptoLegacy: if the algorithm is broken and `legacy` is false.
        CryptoTooLarge: if the data exceeds `max_bytes`.
        CryptoKey: if the stored key is not encoded as its prefix states.

    Example:
        ``{"data": "the body", "mac": {"__bytes__": "…"}, "handle": "webhook"}``
    """
    return hmac.compare_digest(await authenticate(params, ctx), params.mac)


@_op("crypto.compare")
async def compare_bytes(params: CompareParams, ctx: OpContext) -> bool:
    """Compare two values in constant time.

    Args:
        params: `a` and `b`, text or bytes. The time reveals only their lengths.
        ctx: the op's context.

    Returns:
        Whether they are equal.

    Raises:
        CryptoTooLarge: if their total size exceeds `max_bytes`.

    Example:
        ``{"a": "expected", "b": "given"}``
    """
    work: Work = ctx.state
    check_size(work.config, params.a, params.b)
    return hmac.compare_digest(params.a, params.b)


@_op("crypto.random", record=("length",))
async def random_bytes(params: RandomParams, ctx: OpContext) -> bytes:  # noqa: ARG001  required
    """Return secure random bytes from the operating system.

    Args:
        params: `length` is the number of bytes, 32 by default and at most 65,536.
        ctx: the op's context.

    Returns:
        The bytes.

    Example:
        ``{"length": 16}``
    """
    return secrets.token_bytes(params.length)


@_op("crypto.sign", record=("algorithm", "digest", "form", "handle"))
async def sign_data(params: SignParams, ctx: OpContext) -> bytes:
    """Sign data.

    Args:
        params: `data` (not its digest); `algorithm` is `ed25519`, `ecdsa` (P-256 and P-384), `rsa-pss` (the salt is as
            long as the digest) or `rsa-pkcs1v15`; `digest` is `sha256`, `sha384` or `sha512`, by default the one that
            matches the key, and is not supported for `ed25519`; `form="raw"` returns an ECDSA signature as two
            numbers, as in JWT, instead of DER; `key` is the private key, or `handle` names a secret that is bound to
            `op://crypto.sign`.
        ctx: the op's context.

    Returns:
        The signature.

    Raises:
        CryptoKey: if the key is unreadable, of another kind, or too weak.
        CryptoValue: if the algorithm does not support the digest or form.
        CryptoTooLarge: if the data exceeds `max_bytes`.

    Example:
        ``{"data": "release 1.0", "algorithm": "ed25519", "handle": "release"}``
    """
    return await sign(params, ctx)


@_op("crypto.verify", record=("algorithm", "digest", "form", "handle"))
async def verify_signature(params: VerifyParams, ctx: OpContext) -> bool:
    """Verify a signature.

    Args:
        params: `signature`; `key` is the public key (PEM, DER; for `ed25519` also 32 bytes), or `handle` names a
            secret that is bound to `op://crypto.verify`; the other parameters as for `crypto.sign`. If a private key
            is passed, its public key is used.
        ctx: the op's context.

    Returns:
        Whether it is valid. A malformed signature is not.

    Raises:
        CryptoKey: if the key is unreadable, of another kind, too weak, or accepts signatures of any data.
        CryptoValue: if the algorithm does not support the digest or form.
        CryptoTooLarge: if the data exceeds `max_bytes`.

    Example:
        ``{"data": "release 1.0", "signature": {"__bytes__": "…"}, "algorithm": "ed25519", "key": {"__bytes__": "…"}}``
    """
    return await verify(params, ctx)


@_op("crypto.aes_gcm_encrypt", record=("handle",))
async def aes_gcm_encrypt(params: AesGcmEncryptParams, ctx: OpContext) -> AesGcmText:
    """Encrypt and authenticate data with AES-GCM.

    Args:
        params: `data`; `key` of 16, 24 or 32 bytes, or `handle`, a secret that is bound to
            `op://crypto.aes_gcm_encrypt`; `associated_data` is authenticated but not encrypted; `nonce` of 12 to 16
            bytes is only for a format that prescribes it, and only with `key`. By default a new one is generated:
            reusing a nonce reveals the texts that it was used for.
        ctx: the op's context.

    Returns:
        The nonce, and the ciphertext followed by its tag.

    Raises:
        CryptoKey: if the key has an unsupported length.
        CryptoValue: if the nonce has an unsupported length, or is given with a stored key.
        CryptoTooLarge: if the data exceeds `max_bytes`.

    Example:
        ``{"data": "hello", "handle": "backup"}``
    """
    return await encrypt_gcm(params, ctx)


@_op("crypto.aes_gcm_decrypt", record=("handle",))
async def aes_gcm_decrypt(params: AesGcmDecryptParams, ctx: OpContext) -> bytes:
    """Decrypt data encrypted with AES-GCM and verify its integrity.

    Args:
        params: `nonce`, `ciphertext` followed by the tag of 16 bytes, and `associated_data` of the encryption; `key`,
            or `handle`, a secret that is bound to `op://crypto.aes_gcm_decrypt`.
        ctx: the op's context.

    Returns:
        The plaintext as bytes.

    Raises:
        CryptoDecryption: if the data was modified, or encrypted in another way; the error does not reveal which.
        CryptoKey: if the key has an unsupported length.
        CryptoValue: if the nonce has an unsupported length.
        CryptoTooLarge: if the data exceeds `max_bytes`.

    Example:
        ``{"nonce": {"__bytes__": "…"}, "ciphertext": {"__bytes__": "…"}, "handle": "backup"}``
    """
    return await decrypt_gcm(params, ctx)


@_op("crypto.aes_cbc_encrypt", record=("handle",))
async def aes_cbc_encrypt(params: AesCbcEncryptParams, ctx: OpContext) -> AesCbcText:
    """Encrypt data with AES-CBC and PKCS7 padding, for formats that require it. Not authenticated: prefer AES-GCM.

    Args:
        params: `data`; `key` of 16, 24 or 32 bytes, or `handle`, a secret that is bound to
            `op://crypto.aes_cbc_encrypt`; `iv` of 16 bytes is only for a format that prescribes it, and only with
            `key`. By default a new one is generated.
        ctx: the op's context.

    Returns:
        The initialization vector and the ciphertext.

    Raises:
        CryptoKey: if the key has an unsupported length.
        CryptoValue: if the initialization vector has an unsupported length, or is given with a stored key.
        CryptoTooLarge: if the data exceeds `max_bytes`.

    Example:
        ``{"data": "hello", "key": {"__bytes__": "…"}}``
    """
    return await encrypt_cbc(params, ctx)


@_op("crypto.aes_cbc_decrypt", record=("handle",))
async def aes_cbc_decrypt(params: AesCbcDecryptParams, ctx: OpContext) -> bytes:
    """Decrypt data encrypted with AES-CBC and PKCS7 padding. Modifications are not detected: verify an HMAC first.

    Args:
        params: `iv` of 16 bytes and `ciphertext` of the encryption; `key`, or `handle`, a secret that is bound to
            `op://crypto.aes_cbc_decrypt`.
        ctx: the op's context.

    Returns:
        The plaintext as bytes.

    Raises:
        CryptoDecryption: if decryption fails; the error does not reveal why.
        CryptoKey: if the key has an unsupported length.
        CryptoValue: if the initialization vector has an unsupported length.
        CryptoTooLarge: if the data exceeds `max_bytes`.

    Example:
        ``{"iv": {"__bytes__": "…"}, "ciphertext": {"__bytes__": "…"}, "key": {"__bytes__": "…"}}``
    """
    return await decrypt_cbc(params, ctx)


@_op("crypto.rsa_oaep_encrypt", record=("algorithm", "handle"))
async def rsa_oaep_encrypt(params: OaepParams, ctx: OpContext) -> bytes:
    """Encrypt short data, such as a key, with RSA-OAEP.

    Args:
        params: `data`; `key` is the public key (PEM or DER, 2048 to 8192 bits), or `handle`, a secret that is bound to
            `op://crypto.rsa_oaep_encrypt`; `algorithm` is the digest, also of the mask, by default `sha256`; `label`.
        ctx: the op's context.

    Returns:
        The ciphertext.

    Raises:
        CryptoKey: if the key is not a supported RSA key.
        CryptoTooLarge: if the data exceeds one block of the key.

    Example:
        ``{"data": {"__bytes__": "…"}, "key": "-----BEGIN PUBLIC KEY-----…"}``
    """
    return await encrypt_oaep(params, ctx)


@_op("crypto.rsa_oaep_decrypt", record=("algorithm", "handle"))
async def rsa_oaep_decrypt(params: OaepParams, ctx: OpContext) -> bytes:
    """Decrypt data encrypted with RSA-OAEP.

    Args:
        params: `data` is the ciphertext; `key` the private key (PEM or DER, 2048 to 8192 bits), or `handle`, a
            secret that is bound to `op://crypto.rsa_oaep_decrypt`; `algorithm` and `label` of the encryption.
        ctx: the op's context.

    Returns:
        The plaintext as bytes.

    Raises:
        CryptoDecryption: if decryption fails; the error does not reveal why.
        CryptoKey: if the key is not a supported RSA key.

    Example:
        ``{"data": {"__bytes__": "…"}, "handle": "inbox"}``
    """
    return await decrypt_oaep(params, ctx)


@_op("crypto.hkdf", record=("algorithm", "length", "handle"))
async def hkdf(params: HkdfParams, ctx: OpContext) -> bytes:
    """Derive a key from another key with HKDF (RFC 5869). For a password, use `crypto.scrypt`.

    Args:
        params: `key`, or `handle`, a secret that is bound to `op://crypto.hkdf`; `salt` and `info`, text or bytes,
            empty by default; `algorithm` is `sha256`, `sha384`, `sha512` or `sha1`; `length` is 32 by default.
        ctx: the op's context.

    Returns:
        The key as bytes.

    Raises:
        CryptoValue: if `length` exceeds the maximum of HKDF.
        CryptoKey: if the stored key is not encoded as its prefix states.

    Example:
        ``{"handle": "master", "info": "session 7"}``
    """
    return await derive_hkdf(params, ctx)


@_op("crypto.pbkdf2", record=("algorithm", "iterations", "length", "handle"))
async def pbkdf2(params: Pbkdf2Params, ctx: OpContext) -> bytes:
    """Derive a key from a password with PBKDF2 (RFC 8018), for formats that require it.

    Args:
        params: `key` is the password, or `handle` names a secret that is bound to `op://crypto.pbkdf2`; `salt`, text
            or bytes; `iterations` has no default, since the format prescribes it (for a new format, use 600,000 with
            `sha256`); `algorithm` is `sha256`, `sha384`, `sha512` or `sha1`, which is not a weakness here; `length` is
            32 by default.
        ctx: the op's context.

    Returns:
        The key as bytes.

    Raises:
        CryptoTooLarge: if the iterations exceed `max_iterations`.
        CryptoKey: if the stored key is not encoded as its prefix states.

    Example:
        ``{"key": "correct horse", "salt": {"__bytes__": "…"}, "iterations": 600000}``
    """
    return await derive_pbkdf2(params, ctx)


@_op("crypto.scrypt", record=("n", "r", "p", "length", "handle"))
async def scrypt(params: ScryptParams, ctx: OpContext) -> bytes:
    """Derive a key from a password with scrypt (RFC 7914), which makes guessing expensive in both memory and time.

    Args:
        params: `key` is the password, or `handle` names a secret that is bound to `op://crypto.scrypt`; `salt`, text
            or bytes; `n`, `r` and `p` are the costs, by default 131072, 8 and 1; `length` is 32 by default.
        ctx: the op's context.

    Returns:
        The key as bytes.

    Raises:
        CryptoValue: if `n` is not a power of two.
        CryptoTooLarge: if it exceeds `max_memory` or `max_cost`.
        CryptoKey: if the stored key is not encoded as its prefix states.

    Example:
        ``{"key": "correct horse", "salt": {"__bytes__": "…"}}``
    """
    return await derive_scrypt(params, ctx)


@_op("crypto.generate_key", record=("kind",))
async def generate_key(params: GenerateKeyParams, ctx: OpContext) -> GeneratedKey:
    """Generate a key and return it. Use `crypto.create_key` for a key that stays in the host.

    Args:
        params: `kind` is `ed25519`, `ecdsa-p256`, `ecdsa-p384`, `rsa-2048`, `rsa-3072`, `rsa-4096`, or `bytes-16` or
            `bytes-32` for AES and HMAC.
        ctx: the op's context.

    Returns:
        The key (PEM, or plain bytes), and the public key as PEM, if any.

    Example:
        ``{"kind": "ed25519"}``
    """
    work: Work = ctx.state
    return await work.run(ctx, lambda: generate(params.kind))


@_op("crypto.create_key", level=Level.CONTROLLED, record=("kind", "handle", "ops"))
async def create_key(params: CreateKeyParams, ctx: OpContext) -> CreatedKey:
    """Generate a key that is never revealed: it is stored as a secret that only the named ops of this family can use.

    Args:
        params: `kind` as for `crypto.generate_key`; `handle` is the name of the secret (the grant must include
            `secrets:name=NAME,mode=write`); `ops` are the ops that may use it: `["sign", "verify"]`. An existing
            secret of that name is replaced.
        ctx: the op's context.

    Returns:
        The name, and the public key as PEM, if any.

    Raises:
        CryptoValue: if an op does not support keys of this kind.
        OpDenied: if the grant does not allow storing the secret.

    Example:
        ``{"kind": "ed25519", "handle": "release", "ops": ["sign"]}``
    """
    return await store_new_key(params, ctx)


OPS = (
    aes_cbc_decrypt,
    aes_cbc_encrypt,
    aes_gcm_decrypt,
    aes_gcm_encrypt,
    compare_bytes,
    create_key,
    generate_key,
    hash_data,
    hkdf,
    hmac_data,
    hmac_verify,
    pbkdf2,
    random_bytes,
    rsa_oaep_decrypt,
    rsa_oaep_encrypt,
    scrypt,
    sign_data,
    verify_signature,
)
