"""Digests and authentication codes, by the name of the algorithm."""

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
    """The digest of some data."""
    _check_legacy(params.algorithm, legacy=params.legacy)
    work: Work = ctx.state
    check_size(work.config, params.data)
    if is_quick(params.data):
        return _digest_of(params.algorithm, params.data)
    return await work.run(ctx, lambda: _digest_of(params.algorithm, params.data))


async def authenticate(params: HmacParams, ctx: OpContext) -> bytes:
    """The HMAC of some data."""
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
    """Let a broken algorithm pass only if it was asked for as such.

    Raises:
        CryptoLegacy: it was not.
    """
    if algorithm in _LEGACY and not legacy:
        raise CryptoLegacy(algorithm)


def _digest_of(algorithm: str, data: bytes) -> bytes:
    """The digest of ``data``.

    Raises:
        CryptoUnavailable: the library does not offer it.
    """
    try:
        return hashlib.new(algorithm, data, usedforsecurity=algorithm not in _LEGACY).digest()
    except ValueError:
        raise CryptoUnavailable(algorithm) from None


def library_digest(name: str) -> HashAlgorithm:
    """The algorithm as the library names it."""
    from cryptography.hazmat.primitives import hashes

    known: dict[str, HashAlgorithm] = {
        "sha1": hashes.SHA1(),  # noqa: S303  refused, unless it was asked for as a legacy one
        "sha256": hashes.SHA256(),
        "sha384": hashes.SHA384(),
        "sha512": hashes.SHA512(),
    }
    return known[name]
