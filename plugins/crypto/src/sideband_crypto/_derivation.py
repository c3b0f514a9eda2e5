"""Derives keys from passwords and from other keys: PBKDF2, scrypt and HKDF."""

from __future__ import annotations

import hashlib

from sideband.ops import OpContext

from ._digests import library_digest
from ._errors import CryptoUnavailable
from ._key_material import key_bytes
from ._limits import check_derivation, check_pbkdf2, check_scrypt
from ._models import HkdfParams, Pbkdf2Params, ScryptParams
from ._state import Work


async def derive_pbkdf2(params: Pbkdf2Params, ctx: OpContext) -> bytes:
    """Derive a key from a password with PBKDF2."""
    work: Work = ctx.state
    check_pbkdf2(work.config, params.algorithm, params.iterations, params.length)
    key = await key_bytes(ctx, params.key, params.handle)

    def run() -> bytes:
        return hashlib.pbkdf2_hmac(params.algorithm, key, params.salt, params.iterations, params.length)

    return await work.run(ctx, run)


async def derive_scrypt(params: ScryptParams, ctx: OpContext) -> bytes:
    """Derive a key from a password with scrypt."""
    work: Work = ctx.state
    check_scrypt(work.config, params.n, params.r, params.p)
    key = await key_bytes(ctx, params.key, params.handle)
    maxmem = work.config.max_memory + 1024 * 1024

    def run() -> bytes:
        try:
            return hashlib.scrypt(
                key, salt=params.salt, n=params.n, r=params.r, p=params.p, maxmem=maxmem, dklen=params.length
            )
        except (ValueError, AttributeError):
            raise CryptoUnavailable("scrypt") from None

    return await work.run(ctx, run, exclusive=True)


async def derive_hkdf(params: HkdfParams, ctx: OpContext) -> bytes:
    """Derive a key from another key with HKDF."""
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    check_derivation(params.algorithm, params.length)
    key = await key_bytes(ctx, params.key, params.handle)
    return HKDF(library_digest(params.algorithm), params.length, params.salt or None, params.info).derive(key)
