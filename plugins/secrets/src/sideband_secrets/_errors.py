"""What the ops and the resolver of this family fail with. No message ever contains a value.

    OpFailed
    └── SecretsError                         secrets.failed
        ├── SecretMissing(LookupError)           secrets.missing      there is no secret of that name
        ├── SecretAudience(PermissionError)      secrets.audience     it is not for that origin
        ├── SecretBinary(ValueError)             secrets.binary       it is bytes, not text
        ├── SecretUnusable(ValueError)           secrets.unusable     its value can't stand in a header
        ├── SecretReadOnly(PermissionError)      secrets.read_only    it comes from a place that can't be written to
        ├── SecretUnrotated(LookupError)         secrets.unrotated    there is no value before this one
        ├── SecretsLocked(RuntimeError)          secrets.locked       the keyring is locked, or the file is in use
        ├── SecretsUnavailable(RuntimeError)     secrets.unavailable  the keyring can't be used
        ├── SecretsKeyMissing(LookupError)       secrets.key          no key file, or no passphrase
        ├── SecretsWrongKey(PermissionError)     secrets.wrong_key    the store was sealed with another one
        ├── SecretsRekeyRefused(ValueError)      secrets.rekey        a new key can't be had in this way
        ├── SecretsDamaged(ValueError)           secrets.damaged      the store is not as it was written
        │   └── SecretsNewer                         secrets.newer        a later version wrote it
        ├── SecretsExposed(PermissionError)      secrets.exposed      others could read or replace it
        ├── SecretsStorage(OSError)              secrets.storage      the file system refuses
        └── VaultError(RuntimeError)             secrets.vault        the server answered something unexpected
            ├── VaultUnreachable                     secrets.vault_unreachable  no answer, or not in time
            ├── VaultUntrusted                       secrets.vault_untrusted    its certificate does not hold
            ├── VaultTokenMissing(LookupError)       secrets.vault_token        there is no token for it
            ├── VaultDenied(PermissionError)         secrets.vault_denied       it refuses the token
            ├── VaultSealed                          secrets.vault_sealed       it is sealed or not ready
            ├── VaultLimited                         secrets.vault_limited      too many requests
            ├── VaultMount(LookupError)              secrets.vault_mount        no such engine there
            └── VaultMalformed(ValueError)           secrets.vault_malformed    its answer makes no sense

A failed write leaves what was there before.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sideband.ops import OpFailed


class SecretsError(OpFailed):
    """A secret could not be stored, found, or used."""

    code = "secrets.failed"


class SecretMissing(SecretsError, LookupError):
    """There is no secret of that name."""

    code = "secrets.missing"

    def __init__(self, name: str, *, audience: str | None = None, variable: str | None = None) -> None:
        origin = audience or "https://HOST"
        unset = f" (the variable `{variable}`, which it comes from, is not set)" if variable else ""
        super().__init__(
            f"there is no secret `{name}`{unset}",
            hint=f"store it with `sideband secrets set {name} --origin {origin}`",
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


class SecretReadOnly(SecretsError, PermissionError):
    """The secret comes from a place that this host only reads. Nothing was changed."""

    code = "secrets.read_only"

    def __init__(self, name: str, source: str) -> None:
        super().__init__(
            f"the secret `{name}` comes from `{source}`, which is only read",
            hint="change it there, or store yours under another name",
        )


class SecretUnrotated(SecretsError, LookupError):
    """There is no value before this one, or it is no longer kept."""

    code = "secrets.unrotated"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"no earlier value of `{name}` is kept",
            hint="one is kept after `sideband secrets rotate`, for the `grace` of `[plugins.secrets]`",
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


class SecretsRekeyRefused(SecretsError, ValueError):
    """The store can't get a new key in this way. Nothing was changed."""

    code = "secrets.rekey"


class SecretsDamaged(SecretsError, ValueError):
    """The store is not as it was written."""

    code = "secrets.damaged"

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"`{path.name}` is damaged: {problem}", hint=f"restore `{path}` from a copy, or remove it and start afresh"
        )


class SecretsNewer(SecretsDamaged):
    """The store is intact, and written by a later version."""

    code = "secrets.newer"

    def __init__(self, path: Path, version: int) -> None:
        SecretsError.__init__(
            self, f"`{path.name}` has version {version} of the format", hint="use a later version of sideband-secrets"
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


class VaultError(SecretsError, RuntimeError):
    """The server of secrets answered in a way that is none of the others."""

    code = "secrets.vault"

    def __init__(self, address: str, problem: str, *, hint: str = "look at the server's own log") -> None:
        super().__init__(f"the server of secrets at {address} {problem}", hint=hint)


class VaultUnreachable(VaultError):
    """The server does not answer, or not in time."""

    code = "secrets.vault_unreachable"
    retryable = True

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(
            address, f"can't be reached: {problem}", hint="is it running, and `vault.address` right? Try again"
        )


class VaultUntrusted(VaultError):
    """Who answers does not prove to be the server. The token was not sent."""

    code = "secrets.vault_untrusted"

    def __init__(self, address: str) -> None:
        super().__init__(
            address,
            "shows a certificate that is not trusted",
            hint="name the file of its authority as `ca_file` in `[plugins.secrets.vault]`",
        )


class VaultTokenMissing(VaultError, LookupError):
    """There is no token to show to the server."""

    code = "secrets.vault_token"

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(
            address, f"needs a token: {problem}", hint="say where it is under `[plugins.secrets.vault.token]`"
        )


class VaultDenied(VaultError, PermissionError):
    """The server refuses the token, or the token has no right to this secret."""

    code = "secrets.vault_denied"

    def __init__(self, address: str, path: str) -> None:
        super().__init__(
            address,
            f"denies access to `{path}`",
            hint="the token is wrong or has expired, or its policy does not allow to read this path",
        )


class VaultSealed(VaultError):
    """The server is sealed, or not ready yet."""

    code = "secrets.vault_sealed"
    retryable = True

    def __init__(self, address: str) -> None:
        super().__init__(address, "is sealed or not ready", hint="somebody has to unseal it; then try again")


class VaultLimited(VaultError):
    """The server has had too many requests."""

    code = "secrets.vault_limited"
    retryable = True

    def __init__(self, address: str) -> None:
        super().__init__(address, "has had too many requests", hint="try again later, or raise its quota")


class VaultMount(VaultError, LookupError):
    """There is no KV engine of version 2 where the configuration says."""

    code = "secrets.vault_mount"

    def __init__(self, address: str, mount: str) -> None:
        super().__init__(
            address,
            f"has no KV engine of version 2 at `{mount}`",
            hint="set `mount` in `[plugins.secrets.vault]` to where it is",
        )


class VaultMalformed(VaultError, ValueError):
    """What the server answered, or what is stored there, is not what a secret looks like."""

    code = "secrets.vault_malformed"

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(
            address,
            f"gave something unusable: {problem}",
            hint='a secret has a field `value`, and may have `origins` ("https://HOST") and `headers`',
        )
