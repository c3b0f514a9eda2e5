"""The errors of the ops and the resolver of this family. No message ever contains a value.

    OpFailed
    └── SecretsError                         secrets.failed
        ├── SecretMissing(LookupError)           secrets.missing      the secret does not exist
        ├── SecretAudience(PermissionError)      secrets.audience     the secret is not bound to that origin
        ├── SecretBinary(ValueError)             secrets.binary       the value is bytes, not text
        ├── SecretUnusable(ValueError)           secrets.unusable     the value cannot be sent in a header
        ├── SecretReadOnly(PermissionError)      secrets.read_only    the secret comes from a read-only source
        ├── SecretUnrotated(LookupError)         secrets.unrotated    no previous value is kept
        ├── SecretChanged(RuntimeError)          secrets.changed      the secret was changed since
        ├── SecretsLocked(RuntimeError)          secrets.locked       the keyring is locked, or the file is in use
        ├── SecretsUnavailable(RuntimeError)     secrets.unavailable  the keyring is unavailable
        ├── SecretsKeyMissing(LookupError)       secrets.key          the key file or the passphrase is missing
        ├── SecretsWrongKey(PermissionError)     secrets.wrong_key    the store was encrypted with another key
        ├── SecretsRekeyRefused(ValueError)      secrets.rekey        the store cannot be rekeyed in this way
        ├── SecretsDamaged(ValueError)           secrets.damaged      the store is damaged
        │   └── SecretsNewer                         secrets.newer        the store has a newer format
        ├── SecretsExposed(PermissionError)      secrets.exposed      other users can read or replace a file
        ├── SecretsStorage(OSError)              secrets.storage      an I/O error
        └── VaultError(RuntimeError)             secrets.vault        an unexpected response of the Vault server
            ├── VaultUnreachable                     secrets.vault_unreachable  no response, or a timeout
            ├── VaultUntrusted                       secrets.vault_untrusted    the certificate is not trusted
            ├── VaultTokenMissing(LookupError)       secrets.vault_token        no token for the server
            ├── VaultDenied(PermissionError)         secrets.vault_denied       the server rejects the token
            ├── VaultSealed                          secrets.vault_sealed       the server is sealed or not ready
            ├── VaultLimited                         secrets.vault_limited      too many requests
            ├── VaultMount(LookupError)              secrets.vault_mount        no KV engine at the mount path
            └── VaultMalformed(ValueError)           secrets.vault_malformed    an invalid response or secret

A failed write leaves the previous state unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sideband.ops import OpFailed


class SecretsError(OpFailed):
    """A secret could not be stored, found, or used."""

    code = "secrets.failed"


class SecretMissing(SecretsError, LookupError):
    """The secret does not exist."""

    code = "secrets.missing"

    def __init__(
        self, name: str, *, audience: str | None = None, variable: str | None = None, changing: bool = False
    ) -> None:
        origin = audience or "https://HOST"
        unset = f": the variable `{variable}` is not set" if variable else ""
        storing = f"store it with `sideband secrets set {name} --origin {origin}`"
        super().__init__(
            f"secret `{name}` does not exist{unset}",
            hint="list the secrets with `sideband secrets list`" if changing else storing,
        )


class SecretAudience(SecretsError, PermissionError):
    """The secret is not bound to the requested origin. It was not sent."""

    code = "secrets.audience"

    def __init__(self, name: str, audience: str, origins: Iterable[str]) -> None:
        bound = ", ".join(origins) or "no origin"
        super().__init__(
            f"secret `{name}` is not bound to `{audience}`; it is bound to {bound}",
            hint=f"to allow this origin, store it again: `sideband secrets set {name} --origin {audience}`",
        )


class SecretBinary(SecretsError, ValueError):
    """The value is bytes, not text."""

    code = "secrets.binary"

    def __init__(self, name: str) -> None:
        super().__init__(f"secret `{name}` is bytes, not text", hint="use `secrets.read_binary`")


class SecretUnusable(SecretsError, ValueError):
    """The value cannot be sent in a header as it is."""

    code = "secrets.unusable"

    def __init__(self, name: str, header: str) -> None:
        super().__init__(
            f"the value of secret `{name}` is not valid in the header `{header}`",
            hint="use `{base64}` in the header to encode it; headers are limited to one line of printable ASCII",
        )


class SecretReadOnly(SecretsError, PermissionError):
    """The secret comes from a read-only source. Nothing was changed."""

    code = "secrets.read_only"

    def __init__(self, name: str, source: str) -> None:
        super().__init__(
            f"secret `{name}` comes from `{source}`, which is read-only",
            hint="change it there, or use another name",
        )


class SecretUnrotated(SecretsError, LookupError):
    """The secret has no previous value, or it is no longer kept."""

    code = "secrets.unrotated"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"no previous value of `{name}` is kept",
            hint="rotate the secret first; `grace` in `[plugins.secrets]` sets how long the previous value is kept",
        )


class SecretChanged(SecretsError, RuntimeError):
    """The secret was changed after the effect that would be undone."""

    code = "secrets.changed"

    def __init__(self, name: str) -> None:
        super().__init__(f"secret `{name}` was changed since", hint="undo the later change first; nothing was changed")


class SecretsLocked(SecretsError, RuntimeError):
    """The keyring is locked, or another process holds the store's lock."""

    code = "secrets.locked"
    retryable = True

    def __init__(self, what: str, *, hint: str) -> None:
        super().__init__(f"{what} is locked", hint=hint)


class SecretsUnavailable(SecretsError, RuntimeError):
    """The configured backend is unavailable on this machine."""

    code = "secrets.unavailable"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"OS keyring is unavailable: {problem}",
            hint='start its service, or store secrets in a file with `backend = "encrypted"` in `[plugins.secrets]`',
        )


class SecretsKeyMissing(SecretsError, LookupError):
    """The key file or the passphrase of the store is missing."""

    code = "secrets.key"


class SecretsWrongKey(SecretsError, PermissionError):
    """The store is intact, but was encrypted with another key or passphrase."""

    code = "secrets.wrong_key"

    def __init__(self, path: Path, source: str) -> None:
        super().__init__(
            f"wrong {source} for `{path.name}`",
            hint="use the one that the store was encrypted with; nothing was changed",
        )


class SecretsRekeyRefused(SecretsError, ValueError):
    """The store cannot be rekeyed in this way. Nothing was changed."""

    code = "secrets.rekey"


class SecretsDamaged(SecretsError, ValueError):
    """The store is damaged."""

    code = "secrets.damaged"

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"`{path.name}` is damaged: {problem}", hint=f"restore `{path}` from a backup, or remove it and start over"
        )


class SecretsNewer(SecretsDamaged):
    """The store was written by a newer version of sideband-secrets."""

    code = "secrets.newer"

    def __init__(self, path: Path, version: int) -> None:
        SecretsError.__init__(
            self,
            f"`{path.name}` has the unsupported format version {version}",
            hint="upgrade sideband-secrets to a later version",
        )


class SecretsExposed(SecretsError, PermissionError):
    """Other users can access a file that must be private."""

    code = "secrets.exposed"

    def __init__(self, path: Path, problem: str, *, hint: str) -> None:
        super().__init__(f"`{path}` {problem}", hint=hint)


class SecretsStorage(SecretsError, OSError):
    """An I/O error. The stored secrets are unchanged."""

    code = "secrets.storage"

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"cannot access `{path}`: {problem}",
            hint="check free disk space and file permissions; nothing was changed",
        )


class VaultError(SecretsError, RuntimeError):
    """The Vault server responded in an unexpected way."""

    code = "secrets.vault"

    def __init__(self, address: str, problem: str, *, hint: str = "check the server's log") -> None:
        super().__init__(f"Vault server at {address} {problem}", hint=hint)


class VaultUnreachable(VaultError):
    """The server does not respond, or not in time."""

    code = "secrets.vault_unreachable"
    retryable = True

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(
            address,
            f"is unreachable: {problem}",
            hint="check that it is running and that `vault.address` is correct, then retry",
        )


class VaultUntrusted(VaultError):
    """The server's certificate is not trusted. The token was not sent."""

    code = "secrets.vault_untrusted"

    def __init__(self, address: str) -> None:
        super().__init__(
            address,
            "has an untrusted certificate",
            hint="set `ca_file` in `[plugins.secrets.vault]` to the certificates of its authority",
        )


class VaultTokenMissing(VaultError, LookupError):
    """No token for the server was found."""

    code = "secrets.vault_token"

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(
            address, f"requires a token: {problem}", hint="configure it in `[plugins.secrets.vault.token]`"
        )


class VaultDenied(VaultError, PermissionError):
    """The server rejects the token, or its policy does not allow this path."""

    code = "secrets.vault_denied"

    def __init__(self, address: str, path: str) -> None:
        super().__init__(
            address,
            f"denies access to `{path}`",
            hint="check that the token is valid and that its policy allows reading this path",
        )


class VaultSealed(VaultError):
    """The server is sealed, or not ready yet."""

    code = "secrets.vault_sealed"
    retryable = True

    def __init__(self, address: str) -> None:
        super().__init__(address, "is sealed or not ready", hint="unseal the server, then retry")


class VaultLimited(VaultError):
    """The server received too many requests."""

    code = "secrets.vault_limited"
    retryable = True

    def __init__(self, address: str) -> None:
        super().__init__(address, "received too many requests", hint="retry later, or raise its quota")


class VaultMount(VaultError, LookupError):
    """The configured mount path has no KV engine of version 2."""

    code = "secrets.vault_mount"

    def __init__(self, address: str, mount: str) -> None:
        super().__init__(
            address,
            f"has no KV engine of version 2 at `{mount}`",
            hint="set `mount` in `[plugins.secrets.vault]` to the engine's path",
        )


class VaultMalformed(VaultError, ValueError):
    """The server's response, or the secret stored there, is invalid."""

    code = "secrets.vault_malformed"

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(
            address,
            f"returned invalid data: {problem}",
            hint='store a field `value`, and optionally `origins` ("https://HOST") and `headers`',
        )


ERRORS = (
    SecretAudience,
    SecretBinary,
    SecretChanged,
    SecretMissing,
    SecretReadOnly,
    SecretUnrotated,
    SecretUnusable,
    SecretsDamaged,
    SecretsError,
    SecretsExposed,
    SecretsKeyMissing,
    SecretsLocked,
    SecretsNewer,
    SecretsRekeyRefused,
    SecretsStorage,
    SecretsUnavailable,
    SecretsWrongKey,
    VaultDenied,
    VaultError,
    VaultLimited,
    VaultMalformed,
    VaultMount,
    VaultSealed,
    VaultTokenMissing,
    VaultUnreachable,
    VaultUntrusted,
)
"""The errors that skills can catch by class."""
