"""Checks of sizes and costs that run before any expensive work."""

from __future__ import annotations

from ._config import Config
from ._errors import CryptoTooLarge, CryptoValue

_SIZES = {"sha1": 20, "sha256": 32, "sha384": 48, "sha512": 64}


def check_size(config: Config, *data: bytes) -> None:
    """Check the size of the data.

    Raises:
        CryptoTooLarge: if it exceeds `max_bytes`.
    """
    size = sum(map(len, data))
    if size > config.max_bytes:
        raise CryptoTooLarge(
            f"data of {size:,} bytes exceeds the limit of {config.max_bytes:,} bytes",
            hint="sign the digest of large data, or raise `max_bytes` in `[plugins.crypto]`",
        )


def check_length(name: str, value: bytes, minimum: int, maximum: int) -> None:
    """Check the length of a nonce.

    Raises:
        CryptoValue: if it is too short or too long.
    """
    if not minimum <= len(value) <= maximum:
        expected = f"{minimum}" if minimum == maximum else f"{minimum} to {maximum}"
        raise CryptoValue(
            f"`{name}` must have {expected} bytes, got {len(value)}",
            hint=f"omit `{name}` when encrypting, to generate one; pass it as bytes, not as text",
        )


def check_pbkdf2(config: Config, algorithm: str, iterations: int, length: int) -> None:
    """Check the number of iterations, which are run for each block of the result.

    Raises:
        CryptoTooLarge: if their total exceeds `max_iterations`.
    """
    blocks = -(-length // _SIZES[algorithm])
    if iterations * blocks > config.max_iterations:
        raise CryptoTooLarge(
            f"{iterations:,} iterations for {blocks} blocks exceed the limit of {config.max_iterations:,}",
            hint="derive one block and expand it with hkdf, or raise `max_iterations` in `[plugins.crypto]`",
        )


def check_scrypt(config: Config, n: int, r: int, p: int) -> None:
    """Check the costs of scrypt.

    Raises:
        CryptoValue: if `n` is not a power of two.
        CryptoTooLarge: if the memory or the time exceeds its limit.
    """
    if n & (n - 1):
        raise CryptoValue(f"`n` must be a power of two, got {n}", hint="use 16384 to 131072, with `r` 8")
    if 128 * r * (n + p + 2) > config.max_memory:
        raise CryptoTooLarge(
            f"n={n}, r={r}, p={p} exceeds the memory limit of {config.max_memory:,} bytes",
            hint="use a smaller `n`, or raise `max_memory` in `[plugins.crypto]`",
        )
    if n * r * p > config.max_cost:
        raise CryptoTooLarge(
            f"n={n}, r={r}, p={p} exceeds the cost limit of {config.max_cost:,}",
            hint="use a smaller `n`, or raise `max_cost` in `[plugins.crypto]`",
        )


def check_derivation(algorithm: str, length: int) -> None:
    """Check the length of a key derived with HKDF.

    Raises:
        CryptoValue: if it exceeds 255 blocks.
    """
    maximum = 255 * _SIZES[algorithm]
    if length > maximum:
        raise CryptoValue(f"hkdf with {algorithm} supports at most {maximum:,} bytes", hint="request a shorter key")
