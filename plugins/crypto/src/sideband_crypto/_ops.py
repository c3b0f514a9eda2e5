"""The ops of the family `crypto`."""

from __future__ import annotations

import hmac
import secrets
from functools import partial

from sideband.ops import Level, OpContext, op

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

# All but one only calculate; `create_key` also stores a secret.
_op = partial(op, requires="crypto", level=Level.SAFE)


@_op("crypto.hash", scope=scope_of("hash"), record=("algorithm", "legacy"))
async def hash_data(params: HashParams, ctx: OpContext) -> bytes:
    """The digest of some data.

    Args:
        params: `data` is text or bytes; `algorithm` one of `sha256` (the default), `sha384`, `sha512`, `sha224`,
            `sha3_256`, `sha3_384`, `sha3_512`, `blake2b`, `blake2s`, and with `legacy=True` also `sha1` and `md5`.
        ctx: the dispatch.

    Returns:
        The digest as bytes.

    Raises:
        CryptoLegacy: the algorithm is broken, and was not asked for as a legacy one.
        CryptoTooLarge: the data are longer than `max_bytes`.

    Example:
        ``{"data": "hello", "algorithm": "sha3_256"}``
    """
    return await digest_data(params, ctx)


@_op("crypto.hmac", scope=scope_of("hmac"), record=("algorithm", "legacy", "handle"))
async def hmac_data(params: HmacParams, ctx: OpContext) -> bytes:
    """The HMAC of some data: proof that whoever made it knows the key.

    Args:
        params: `data`; `algorithm` as for `crypto.hash` (without the `blake2` ones, which have keys of their own);
            `key`, text or bytes, or `handle`, the name of a secret that is bound to `op://crypto.hmac`.
        ctx: the dispatch.

    Returns:
        The code as bytes. To check one that somebody sent, use `crypto.hmac_verify`.

    Raises:
        CryptoLegacy: the algorithm is broken, and was not asked for as a legacy one.
        CryptoTooLarge: the data are longer than `max_bytes`.
        CryptoKey: the stored key is not what it says.

    Example:
        ``{"data": "the body", "handle": "webhook"}``
    """
    return await authenticate(params, ctx)


@_op("crypto.hmac_verify", scope=scope_of("hmac_verify"), record=("algorithm", "legacy", "handle"))
async def hmac_verify(params: HmacVerifyParams, ctx: OpContext) -> bool:
    """Check an HMAC that somebody sent, in constant time. Who may verify can't thereby make one.

    Args:
        params: `mac` is the whole code as bytes (one that was shortened does not fit); the others as for
            `crypto.hmac`; a secret must be bound to `op://crypto.hmac_verify`.
        ctx: the dispatch.

    Returns:
        Whether it fits.

    Raises:
        CryptoLegacy: the algorithm is broken, and was not asked for as a legacy one.
        CryptoTooLarge: the data are longer than `max_bytes`.
        CryptoKey: the stored key is not what it says.

    Example:
        ``{"data": "the body", "mac": {"__bytes__": "…"}, "handle": "webhook"}``
    """
    return hmac.compare_digest(await authenticate(params, ctx), params.mac)


@_op("crypto.compare", scope=scope_of("compare"))
async def compare_bytes(params: CompareParams, ctx: OpContext) -> bool:
    """Compare two values in a time that does not tell where they differ.

    Args:
        params: `a` and `b`, text or bytes. Only their lengths can be told from the time.
        ctx: the dispatch.

    Returns:
        Whether they are equal.

    Raises:
        CryptoTooLarge: together they are longer than `max_bytes`.

    Example:
        ``{"a": "expected", "b": "given"}``
    """
    work: Work = ctx.state
    check_size(work.config, params.a, params.b)
    return hmac.compare_digest(params.a, params.b)


@_op("crypto.random", scope=scope_of("random"), record=("length",))
async def random_bytes(params: RandomParams, ctx: OpContext) -> bytes:  # noqa: ARG001  every handler takes both
    """Bytes that nobody can guess, from the operating system.

    Args:
        params: `length` is how many, 32 unless told, at most 65,536.
        ctx: the dispatch.

    Returns:
        The bytes.

    Example:
        ``{"length": 16}``
    """
    return secrets.token_bytes(params.length)


@_op("crypto.sign", scope=scope_of("sign"), record=("algorithm", "digest", "form", "handle"))
async def sign_data(params: SignParams, ctx: OpContext) -> bytes:
    """Sign some data.

    Args:
        params: `data` (not its digest); `algorithm` is `ed25519`, `ecdsa` (P-256 and P-384), `rsa-pss` (the salt is as
            long as the digest) or `rsa-pkcs1v15`; `digest` is `sha256`, `sha384` or `sha512`, unless told that which
            fits the key, and none for `ed25519`; `form="raw"` makes an ECDSA signature of two numbers, as JWT has it,
            instead of DER; `key` is the private key, or `handle` names a secret that is bound to `op://crypto.sign`.
        ctx: the dispatch.

    Returns:
        The signature.

    Raises:
        CryptoKey: it can't be read, is of another kind, or too weak.
        CryptoValue: a digest or form that the algorithm does not have.
        CryptoTooLarge: the data are longer than `max_bytes`.

    Example:
        ``{"data": "release 1.0", "algorithm": "ed25519", "handle": "release"}``
    """
    return await sign(params, ctx)


@_op("crypto.verify", scope=scope_of("verify"), record=("algorithm", "digest", "form", "handle"))
async def verify_signature(params: VerifyParams, ctx: OpContext) -> bool:
    """Check a signature.

    Args:
        params: `signature`; `key` is the public key (PEM, DER; for `ed25519` also 32 bytes), or `handle` names a
            secret that is bound to `op://crypto.verify`; the others as for `crypto.sign`. Of a private key, the public
            one is used.
        ctx: the dispatch.

    Returns:
        Whether it fits. One that is malformed does not.

    Raises:
        CryptoKey: it can't be read, is of another kind, too weak, or fits signatures of any text.
        CryptoValue: a digest or form that the algorithm does not have.
        CryptoTooLarge: the data are longer than `max_bytes`.

    Example:
        ``{"data": "release 1.0", "signature": {"__bytes__": "…"}, "algorithm": "ed25519", "key": {"__bytes__": "…"}}``
    """
    return await verify(params, ctx)


@_op("crypto.aes_gcm_encrypt", scope=scope_of("aes_gcm_encrypt"), record=("handle",))
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
    return await encrypt_gcm(params, ctx)


@_op("crypto.aes_gcm_decrypt", scope=scope_of("aes_gcm_decrypt"), record=("handle",))
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
    return await decrypt_gcm(params, ctx)


@_op("crypto.aes_cbc_encrypt", scope=scope_of("aes_cbc_encrypt"), record=("handle",))
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
    return await encrypt_cbc(params, ctx)


@_op("crypto.aes_cbc_decrypt", scope=scope_of("aes_cbc_decrypt"), record=("handle",))
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
    return await decrypt_cbc(params, ctx)


@_op("crypto.rsa_oaep_encrypt", scope=scope_of("rsa_oaep_encrypt"), record=("algorithm", "handle"))
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
    return await encrypt_oaep(params, ctx)


@_op("crypto.rsa_oaep_decrypt", scope=scope_of("rsa_oaep_decrypt"), record=("algorithm", "handle"))
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
    return await decrypt_oaep(params, ctx)


@_op("crypto.hkdf", scope=scope_of("hkdf"), record=("algorithm", "length", "handle"))
async def hkdf(params: HkdfParams, ctx: OpContext) -> bytes:
    """Make further keys of a key with HKDF (RFC 5869). A password is no key: use `crypto.scrypt` for it.

    Args:
        params: `key`, or `handle`, a secret that is bound to `op://crypto.hkdf`; `salt` and `info`, text or bytes,
            empty unless told; `algorithm` is `sha256`, `sha384`, `sha512` or `sha1`; `length` is 32.
        ctx: the dispatch.

    Returns:
        The key as bytes.

    Raises:
        CryptoValue: `length` is more than HKDF can make.
        CryptoKey: the stored key is not what it says.

    Example:
        ``{"handle": "master", "info": "session 7"}``
    """
    return await derive_hkdf(params, ctx)


@_op("crypto.pbkdf2", scope=scope_of("pbkdf2"), record=("algorithm", "iterations", "length", "handle"))
async def pbkdf2(params: Pbkdf2Params, ctx: OpContext) -> bytes:
    """Make a key of a password with PBKDF2 (RFC 8018), for formats that demand it.

    Args:
        params: `key` is the password, or `handle` names a secret that is bound to `op://crypto.pbkdf2`; `salt`, text
            or bytes; `iterations` has no default, as the format says it (for something new, 600,000 with `sha256`);
            `algorithm` is `sha256`, `sha384`, `sha512` or `sha1`, which is no weakness here; `length` is 32.
        ctx: the dispatch.

    Returns:
        The key as bytes.

    Raises:
        CryptoTooLarge: it would take more rounds than `max_iterations`.
        CryptoKey: the stored key is not what it says.

    Example:
        ``{"key": "correct horse", "salt": {"__bytes__": "…"}, "iterations": 600000}``
    """
    return await derive_pbkdf2(params, ctx)


@_op("crypto.scrypt", scope=scope_of("scrypt"), record=("n", "r", "p", "length", "handle"))
async def scrypt(params: ScryptParams, ctx: OpContext) -> bytes:
    """Make a key of a password with scrypt (RFC 7914), which costs whoever guesses passwords memory as well as time.

    Args:
        params: `key` is the password, or `handle` names a secret that is bound to `op://crypto.scrypt`; `salt`, text
            or bytes; `n`, `r` and `p` are the costs (131072, 8 and 1); `length` is 32.
        ctx: the dispatch.

    Returns:
        The key as bytes.

    Raises:
        CryptoValue: `n` is no power of two.
        CryptoTooLarge: it would take more than `max_memory` or `max_cost`.
        CryptoKey: the stored key is not what it says.

    Example:
        ``{"key": "correct horse", "salt": {"__bytes__": "…"}}``
    """
    return await derive_scrypt(params, ctx)


@_op("crypto.generate_key", scope=scope_of("generate_key"), record=("kind",))
async def generate_key(params: GenerateKeyParams, ctx: OpContext) -> GeneratedKey:
    """Make a key and hand it out. `crypto.create_key` makes one that stays in the host.

    Args:
        params: `kind` is `ed25519`, `ecdsa-p256`, `ecdsa-p384`, `rsa-2048`, `rsa-3072`, `rsa-4096`, or `bytes-16` or
            `bytes-32` for AES and HMAC.
        ctx: the dispatch.

    Returns:
        The key (PEM, or plain bytes), and the public key as PEM, if there is one.

    Example:
        ``{"kind": "ed25519"}``
    """
    work: Work = ctx.state
    return await work.run(ctx, lambda: generate(params.kind))


@_op("crypto.create_key", scope=scope_of("create_key"), level=Level.CONTROLLED, record=("kind", "handle", "ops"))
async def create_key(params: CreateKeyParams, ctx: OpContext) -> CreatedKey:
    """Make a key that nobody sees: it is stored as a secret that only the named ops of this family can use.

    Args:
        params: `kind` as for `crypto.generate_key`; `handle` is the name to store it under (the grant must say
            `secrets:name=NAME,mode=write`); `ops` are the ops that may use it: `["sign", "verify"]`. A secret of that
            name is replaced.
        ctx: the dispatch.

    Returns:
        The name, and the public key as PEM, if there is one.

    Raises:
        CryptoValue: an op that no key of this kind is for.
        OpDenied: the grant does not have the right to store it.

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
