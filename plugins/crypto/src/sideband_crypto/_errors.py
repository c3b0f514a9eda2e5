"""What the ops fail with. No message says what a key, a text or a signature holds, or why a decryption failed.

    OpFailed
    └── CryptoError                        crypto.failed
        ├── CryptoKey(ValueError)              crypto.key          it is no key for that
        ├── CryptoValue(ValueError)            crypto.value        a nonce, length or cost that can't be
        ├── CryptoLegacy(ValueError)           crypto.legacy       an algorithm that is broken, not asked for as such
        ├── CryptoTooLarge(ValueError)         crypto.too_large    more data, time or memory than is allowed
        ├── CryptoDecryption(ValueError)       crypto.decryption   it can't be decrypted, for whatever reason
        └── CryptoUnavailable(RuntimeError)    crypto.unavailable  the library of this machine does not have it

After any of them nothing has changed.
"""

from __future__ import annotations

from sideband.ops import OpFailed


class CryptoError(OpFailed):
    """An op of the family could not do what it was asked."""

    nothing_happened = True
    code = "crypto.failed"


class CryptoKey(CryptoError, ValueError):
    """What was given as a key, or is stored under the name, is no key for that."""

    code = "crypto.key"

    def __init__(self, problem: str, *, handle: str | None = None, hint: str) -> None:
        owner = "the key" if handle is None else f"the secret `{handle}`"
        super().__init__(f"{owner} {problem}", hint=hint)


class CryptoValue(CryptoError, ValueError):
    """A nonce, a length or a cost that the algorithm does not have."""

    code = "crypto.value"

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(problem, hint=hint)


class CryptoLegacy(CryptoError, ValueError):
    """The algorithm is broken, and was not asked for as a legacy one."""

    code = "crypto.legacy"

    def __init__(self, algorithm: str) -> None:
        super().__init__(
            f"`{algorithm}` is broken: others can make two texts with one digest",
            hint="use sha256; where something old demands it, say `legacy=True`",
        )


class CryptoTooLarge(CryptoError, ValueError):
    """More data, time or memory than `[plugins.crypto]` allows."""

    code = "crypto.too_large"

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(problem, hint=hint)


class CryptoDecryption(CryptoError, ValueError):
    """The text was not encrypted with this key and these parameters, or was changed. Which of them is not said."""

    code = "crypto.decryption"

    def __init__(self) -> None:
        # one message for all reasons: whoever can tell them apart can decrypt without the key
        super().__init__(
            "it can't be decrypted", hint="compare key, nonce and associated data with those of the encryption"
        )


class CryptoUnavailable(CryptoError, RuntimeError):
    """The cryptographic library of this machine does not have the algorithm, or is not allowed to use it."""

    code = "crypto.unavailable"

    def __init__(self, algorithm: str) -> None:
        super().__init__(
            f"the cryptographic library of this machine does not offer `{algorithm}`",
            hint="use another algorithm; a library in FIPS mode offers approved ones only",
        )
