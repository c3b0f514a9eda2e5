"""Digests and message authentication codes, by algorithm name."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

from sideband.ops import OpContext

from ._errors import CryptoLegacy, CryptoUnavailable
from ._key_material import key_bytes
from ._limits import check_size
from ._models import HashParams, HmacParams
from ._state import Work, is_quick

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.hashes import HashAlgorithm

_LEGACY = ("md5", "sha1")


async def digest_data(params: HashParams, ctx: OpContext) -> bytes:
    """Return the digest of data."""
    _check_legacy(params.algorithm, legacy=params.legacy)
    work: Work = ctx.state
    check_size(work.config, params.data)
    if is_quick(params.data):
        return _digest_of(params.algorithm, params.data)
    return await work.run(ctx, lambda: _digest_of(params.algorithm, params.data))


async def authenticate(params: HmacParams, ctx: OpContext) -> bytes:
    """Return the HMAC of data."""
    _check_legacy(params.algorithm, legacy=params.legacy)
    work: Work = ctx.state
    check_size(work.config, params.data)
    key = await key_bytes(ctx, params.key, params.handle)

    def run() -> bytes:
        try:
            return hmac.digest(key, params.data, params.algorithm)
        except ValueError:
            raise CryptoUnavailable(params.algorithm) from None

    return run() if is_quick(params.data) else await work.run(ctx, run)


def _check_legacy(algorithm: str, *, legacy: bool) -> None:
    """Allow a broken algorithm only with ``legacy``.

    Raises:
        CryptoLegacy: if the algorithm is broken and ``legacy`` is false.
    """
    if algorithm in _LEGACY and not legacy:
        raise CryptoLegacy(algorithm)


def _digest_of(algorithm: str, data: bytes) -> bytes:
    """Return the digest of ``data``.

    Raises:
        CryptoUnavailable: if the library does not support the algorithm.
    """
    try:
        return hashlib.new(algorithm, data, usedforsecurity=algorithm not in _LEGACY).digest()
    except ValueError:
        raise CryptoUnavailable(algorithm) from None


def library_digest(name: str) -> HashAlgorithm:
    """Return the library's object for an algorithm."""
    from cryptography.hazmat.primitives import hashes

    known: dict[str, HashAlgorithm] = {
        "sha1": hashes.SHA1(),  # noqa: S303  requires `legacy`, except for key derivation and OAEP
        "sha256": hashes.SHA256(),
        "sha384": hashes.SHA384(),
        "sha512": hashes.SHA512(),
    }
    return known[name]
