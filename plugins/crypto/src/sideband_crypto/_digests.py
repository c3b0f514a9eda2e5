"""Digests by name."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ._errors import CryptoLegacy, CryptoUnavailable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.hashes import HashAlgorithm

__all__ = ["LEGACY", "check_legacy", "digest_of", "library_digest"]

LEGACY = ("md5", "sha1")


def check_legacy(algorithm: str, *, legacy: bool) -> None:
    """Let a broken algorithm pass only if it was asked for as such.

    Raises:
        CryptoLegacy: it was not.
    """
    if algorithm in LEGACY and not legacy:
        raise CryptoLegacy(algorithm)


def digest_of(algorithm: str, data: bytes) -> bytes:
    """The digest of ``data``.

    Raises:
        CryptoUnavailable: the library does not offer it.
    """
    try:
        return hashlib.new(algorithm, data, usedforsecurity=algorithm not in LEGACY).digest()
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
