"""What is refused before it costs anything."""

from __future__ import annotations

from ._config import Config
from ._errors import CryptoTooLarge, CryptoValue

_SIZES = {"sha1": 20, "sha256": 32, "sha384": 48, "sha512": 64}


def check_size(config: Config, *data: bytes) -> None:
    """Refuse more data than is allowed.

    Raises:
        CryptoTooLarge: it is more.
    """
    size = sum(map(len, data))
    if size > config.max_bytes:
        raise CryptoTooLarge(
            f"{size:,} bytes are more than the {config.max_bytes:,} that are allowed",
            hint="`max_bytes` in `[plugins.crypto]` sets the limit; hash large content and sign its digest",
        )


def check_length(name: str, value: bytes, least: int, most: int) -> None:
    """Refuse a nonce of another length.

    Raises:
        CryptoValue: it is too short or too long.
    """
    if not least <= len(value) <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        raise CryptoValue(
            f"`{name}` has {len(value)} bytes, not {wanted}",
            hint=f"an encryption without `{name}` makes one and returns it; it takes bytes, not text",
        )


def check_pbkdf2(config: Config, algorithm: str, iterations: int, length: int) -> None:
    """Refuse more rounds than are allowed: each block of the result costs all of them.

    Raises:
        CryptoTooLarge: they are more.
    """
    blocks = -(-length // _SIZES[algorithm])
    if iterations * blocks > config.max_iterations:
        raise CryptoTooLarge(
            f"{iterations:,} iterations for {blocks} blocks are more than the {config.max_iterations:,} allowed",
            hint="`max_iterations` in `[plugins.crypto]` sets the limit; derive one block and stretch it with hkdf",
        )


def check_scrypt(config: Config, n: int, r: int, p: int) -> None:
    """Refuse costs that scrypt does not have, or that are too high.

    Raises:
        CryptoValue: `n` is no power of two.
        CryptoTooLarge: it would take more memory or time than is allowed.
    """
    if n & (n - 1):
        raise CryptoValue(f"`n` is {n}, which is no power of two", hint="16384 to 131072 are usual, with `r` 8")
    if 128 * r * (n + p + 2) > config.max_memory:
        raise CryptoTooLarge(
            f"n={n}, r={r}, p={p} takes more than {config.max_memory:,} bytes of memory",
            hint="`max_memory` in `[plugins.crypto]` sets the limit",
        )
    if n * r * p > config.max_cost:
        raise CryptoTooLarge(
            f"n={n}, r={r}, p={p} takes too long", hint="`max_cost` in `[plugins.crypto]` sets the limit"
        )


def check_derivation(algorithm: str, length: int) -> None:
    """Refuse more bytes than HKDF can make.

    Raises:
        CryptoValue: they are more than 255 blocks.
    """
    most = 255 * _SIZES[algorithm]
    if length > most:
        raise CryptoValue(f"hkdf with {algorithm} makes at most {most:,} bytes", hint="ask for a shorter key")
