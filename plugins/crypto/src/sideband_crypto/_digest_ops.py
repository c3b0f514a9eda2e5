"""The ops `crypto.hash`, `crypto.hmac`, `crypto.hmac_verify`, `crypto.compare` and `crypto.random`."""

from __future__ import annotations

import hmac
import secrets

from sideband.ops import Level, OpContext, op

from ._digests import check_legacy, digest_of
from ._errors import CryptoUnavailable
from ._limits import check_size
from ._material import key_bytes
from ._models import CompareParams, HashParams, HmacParams, HmacVerifyParams, RandomParams
from ._scope import NO_SECRET, CryptoScope
from ._work import Work, is_quick

__all__ = ["compare_bytes", "hash_data", "hmac_data", "hmac_verify", "random_bytes"]


@op(
    "crypto.hash",
    requires="crypto",
    scope=lambda _params: CryptoScope(op="hash", key=NO_SECRET),
    level=Level.SAFE,
    record=("algorithm", "legacy"),
)
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
    check_legacy(params.algorithm, legacy=params.legacy)
    work: Work = ctx.state
    check_size(work.config, params.data)
    if is_quick(params.data):
        return digest_of(params.algorithm, params.data)
    return await work.run(ctx, lambda: digest_of(params.algorithm, params.data))


@op(
    "crypto.hmac",
    requires="crypto",
    scope=lambda params: CryptoScope(op="hmac", key=params.handle or NO_SECRET),
    level=Level.SAFE,
    record=("algorithm", "legacy", "handle"),
)
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
    check_legacy(params.algorithm, legacy=params.legacy)
    return await _hmac(params, ctx)


@op(
    "crypto.hmac_verify",
    requires="crypto",
    scope=lambda params: CryptoScope(op="hmac_verify", key=params.handle or NO_SECRET),
    level=Level.SAFE,
    record=("algorithm", "legacy", "handle"),
)
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
    check_legacy(params.algorithm, legacy=params.legacy)
    return hmac.compare_digest(await _hmac(params, ctx), params.mac)


async def _hmac(params: HmacParams, ctx: OpContext) -> bytes:
    work: Work = ctx.state
    check_size(work.config, params.data)
    key = await key_bytes(ctx, params.key, params.handle)

    def run() -> bytes:
        try:
            return hmac.digest(key, params.data, params.algorithm)
        except ValueError:
            raise CryptoUnavailable(params.algorithm) from None

    return run() if is_quick(params.data) else await work.run(ctx, run)


@op(
    "crypto.compare",
    requires="crypto",
    scope=lambda _params: CryptoScope(op="compare", key=NO_SECRET),
    level=Level.SAFE,
)
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


@op(
    "crypto.random",
    requires="crypto",
    scope=lambda _params: CryptoScope(op="random", key=NO_SECRET),
    level=Level.SAFE,
    record=("length",),
)
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
