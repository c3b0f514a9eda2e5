"""What the ops and the resolver of this family fail with. No message ever contains a value.

    OpFailed
    └── SecretsError                         secrets.failed
        ├── SecretMissing(LookupError)           secrets.missing      there is no secret of that name
        ├── SecretAudience(PermissionError)      secrets.audience     it is not for that origin
        ├── SecretBinary(ValueError)             secrets.binary       it is bytes, not text
        ├── SecretUnusable(ValueError)           secrets.unusable     its value can't stand in a header
        ├── SecretsLocked(RuntimeError)          secrets.locked       the keyring is locked, or the file is in use
        ├── SecretsUnavailable(RuntimeError)     secrets.unavailable  the keyring can't be used
        ├── SecretsKeyMissing(LookupError)       secrets.key          no key file, or no passphrase
        ├── SecretsWrongKey(PermissionError)     secrets.wrong_key    the store was sealed with another one
        ├── SecretsDamaged(ValueError)           secrets.damaged      the store is not as it was written
        ├── SecretsExposed(PermissionError)      secrets.exposed      others could read or replace it
        └── SecretsStorage(OSError)              secrets.storage      the file system refuses

A failed write leaves what was there before.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sideband.ops import OpFailed

__all__ = [
    "SecretAudience",
    "SecretBinary",
    "SecretMissing",
    "SecretUnusable",
    "SecretsDamaged",
    "SecretsError",
    "SecretsExposed",
    "SecretsKeyMissing",
    "SecretsLocked",
    "SecretsStorage",
    "SecretsUnavailable",
    "SecretsWrongKey",
]


class SecretsError(OpFailed):
    """A secret could not be stored, found, or used."""

    code = "secrets.failed"


class SecretMissing(SecretsError, LookupError):
    """There is no secret of that name."""

    code = "secrets.missing"

    def __init__(self, name: str, *, audience: str | None = None) -> None:
        origin = audience or "https://HOST"
        super().__init__(
            f"there is no secret `{name}`", hint=f"store it with `sideband secrets set {name} --origin {origin}`"
        )


class SecretAudience(SecretsError, PermissionError):
    """The secret exists and is not for that origin. It was not sent."""

    code = "secrets.audience"

    def __init__(self, name: str, audience: str, origins: Iterable[str]) -> None:
        bound = ", ".join(origins) or "no origin at all"
        super().__init__(
            f"the secret `{name}` is not for `{audience}`; it is bound to {bound}",
            hint=f"if it is meant for it, store it again: `sideband secrets set {name} --origin {audience}`",
        )


class SecretBinary(SecretsError, ValueError):
    """The secret was stored as bytes and is no text."""

    code = "secrets.binary"

    def __init__(self, name: str) -> None:
        super().__init__(f"the secret `{name}` is bytes, not text", hint="`secrets.read_binary` answers bytes")


class SecretUnusable(SecretsError, ValueError):
    """The value can't be sent in a header as it is."""

    code = "secrets.unusable"

    def __init__(self, name: str, header: str) -> None:
        super().__init__(
            f"the value of the secret `{name}` can't stand in the header `{header}`",
            hint="a header takes printable ASCII in one line; `{base64}` in the header's form encodes the value",
        )


class SecretsLocked(SecretsError, RuntimeError):
    """The keyring is locked and nobody unlocked it, or another process holds the store."""

    code = "secrets.locked"
    retryable = True

    def __init__(self, what: str, *, hint: str) -> None:
        super().__init__(f"{what} is locked", hint=hint)


class SecretsUnavailable(SecretsError, RuntimeError):
    """The configured backend can't be used on this machine, now."""

    code = "secrets.unavailable"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"the OS keyring can't be used: {problem}",
            hint='start its service, or keep secrets in a file with `backend = "encrypted"` in `[plugins.secrets]`',
        )


class SecretsKeyMissing(SecretsError, LookupError):
    """The store is there, and what opens it is not."""

    code = "secrets.key"


class SecretsWrongKey(SecretsError, PermissionError):
    """The store is intact, and was sealed with another key or passphrase."""

    code = "secrets.wrong_key"

    def __init__(self, path: Path, source: str) -> None:
        super().__init__(
            f"the {source} does not open `{path.name}`", hint="it was sealed with another one; nothing was changed"
        )


class SecretsDamaged(SecretsError, ValueError):
    """The store is not as it was written."""

    code = "secrets.damaged"

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"`{path.name}` is damaged: {problem}", hint=f"restore `{path}` from a copy, or remove it and start afresh"
        )


class SecretsExposed(SecretsError, PermissionError):
    """A file that must be its owner's alone is not."""

    code = "secrets.exposed"

    def __init__(self, path: Path, problem: str, *, hint: str) -> None:
        super().__init__(f"`{path}` {problem}", hint=hint)


class SecretsStorage(SecretsError, OSError):
    """The file system refuses. What was stored before is still there."""

    code = "secrets.storage"

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"`{path}` can't be used: {problem}", hint="look at free space and permissions; nothing was changed"
        )
