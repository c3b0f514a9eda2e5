"""The ops `crypto.pbkdf2`, `crypto.scrypt` and `crypto.hkdf`: keys from passwords and from other keys."""

from __future__ import annotations

import hashlib

from sideband.ops import Level, OpContext, op

from ._digests import library_digest
from ._errors import CryptoUnavailable
from ._limits import check_derivation, check_pbkdf2, check_scrypt
from ._material import key_bytes
from ._models import HkdfParams, Pbkdf2Params, ScryptParams
from ._scope import NO_SECRET, CryptoScope
from ._work import Work

__all__ = ["hkdf", "pbkdf2", "scrypt"]


@op(
    "crypto.pbkdf2",
    requires="crypto",
    scope=lambda params: CryptoScope(op="pbkdf2", key=params.handle or NO_SECRET),
    level=Level.SAFE,
    record=("algorithm", "iterations", "length", "handle"),
)
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
    work: Work = ctx.state
    check_pbkdf2(work.config, params.algorithm, params.iterations, params.length)
    key = await key_bytes(ctx, params.key, params.handle)

    def run() -> bytes:
        return hashlib.pbkdf2_hmac(params.algorithm, key, params.salt, params.iterations, params.length)

    return await work.run(ctx, run)


@op(
    "crypto.scrypt",
    requires="crypto",
    scope=lambda params: CryptoScope(op="scrypt", key=params.handle or NO_SECRET),
    level=Level.SAFE,
    record=("n", "r", "p", "length", "handle"),
)
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
    work: Work = ctx.state
    check_scrypt(work.config, params.n, params.r, params.p)
    key = await key_bytes(ctx, params.key, params.handle)
    most = work.config.max_memory + 1024 * 1024

    def run() -> bytes:
        try:
            return hashlib.scrypt(
                key, salt=params.salt, n=params.n, r=params.r, p=params.p, maxmem=most, dklen=params.length
            )
        except (ValueError, AttributeError):
            raise CryptoUnavailable("scrypt") from None

    return await work.run(ctx, run, alone=True)


@op(
    "crypto.hkdf",
    requires="crypto",
    scope=lambda params: CryptoScope(op="hkdf", key=params.handle or NO_SECRET),
    level=Level.SAFE,
    record=("algorithm", "length", "handle"),
)
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
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    check_derivation(params.algorithm, params.length)
    key = await key_bytes(ctx, params.key, params.handle)
    return HKDF(library_digest(params.algorithm), params.length, params.salt or None, params.info).derive(key)
