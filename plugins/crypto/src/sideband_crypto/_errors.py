"""The errors of the ops. Messages never reveal a key, a text or a signature, nor why a decryption failed.

    OpFailed
    └── CryptoError                        crypto.failed
        ├── CryptoKey(ValueError)              crypto.key          the key is invalid, or of another kind
        ├── CryptoValue(ValueError)            crypto.value        an unsupported nonce, length or cost
        ├── CryptoLegacy(ValueError)           crypto.legacy       a broken algorithm without `legacy`
        ├── CryptoTooLarge(ValueError)         crypto.too_large    a limit on data, time or memory is exceeded
        ├── CryptoDecryption(ValueError)       crypto.decryption   decryption failed, for whatever reason
        └── CryptoUnavailable(RuntimeError)    crypto.unavailable  the library does not support the algorithm

After any of these errors, nothing was changed.
"""

from __future__ import annotations

from sideband.ops import OpFailed


class CryptoError(OpFailed):
    """An op of the family failed."""

    nothing_happened = True
    code = "crypto.failed"


class CryptoKey(CryptoError, ValueError):
    """The given or stored key is invalid for the algorithm."""

    code = "crypto.key"

    def __init__(self, problem: str, *, handle: str | None = None, hint: str) -> None:
        owner = "key" if handle is None else f"secret `{handle}`"
        super().__init__(f"{owner} {problem}", hint=hint)


class CryptoValue(CryptoError, ValueError):
    """A nonce, length or cost that the algorithm does not support."""

    code = "crypto.value"

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(problem, hint=hint)


class CryptoLegacy(CryptoError, ValueError):
    """The algorithm is broken, and `legacy` was not set."""

    code = "crypto.legacy"

    def __init__(self, algorithm: str) -> None:
        super().__init__(
            f"`{algorithm}` is broken: collisions can be computed",
            hint="use sha256, or set `legacy` to true if an old format requires it",
        )


class CryptoTooLarge(CryptoError, ValueError):
    """The op exceeds the limits of `[plugins.crypto]` on data, time or memory."""

    code = "crypto.too_large"

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(problem, hint=hint)


class CryptoDecryption(CryptoError, ValueError):
    """The ciphertext was modified, or encrypted with another key or parameters. The error does not reveal which."""

    code = "crypto.decryption"

    def __init__(self) -> None:
        # one message for all reasons: distinguishing them would help to decrypt without the key
        super().__init__(
            "decryption failed", hint="check that key, nonce and associated data match those of the encryption"
        )


class CryptoUnavailable(CryptoError, RuntimeError):
    """The cryptographic library of this machine does not support the algorithm, or disables it."""

    code = "crypto.unavailable"

    def __init__(self, algorithm: str) -> None:
        super().__init__(
            f"the cryptographic library of this machine does not support `{algorithm}`",
            hint="use another algorithm; in FIPS mode, only approved algorithms are available",
        )


ERRORS = (
    CryptoDecryption,
    CryptoError,
    CryptoKey,
    CryptoLegacy,
    CryptoTooLarge,
    CryptoUnavailable,
    CryptoValue,
)
"""The errors that skills can catch by class."""
