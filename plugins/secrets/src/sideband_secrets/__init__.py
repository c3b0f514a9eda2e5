"""The op family `secrets` of sideband: credentials that skills can use without seeing them.

Ops are called by name (`secrets.set`). Import from here to catch their errors.
"""

from ._backends import Backend, Previous, StoredSecret, Summary
from ._config import Config
from ._errors import (
    SecretAudience,
    SecretBinary,
    SecretChanged,
    SecretMissing,
    SecretReadOnly,
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
    SecretUnrotated,
    SecretUnusable,
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
from ._models import Rekeyed, SecretInfo, SecretList
from ._scope import SecretsScope
from ._version import __version__

__all__ = [
    "Backend",
    "Config",
    "Previous",
    "Rekeyed",
    "SecretAudience",
    "SecretBinary",
    "SecretChanged",
    "SecretInfo",
    "SecretList",
    "SecretMissing",
    "SecretReadOnly",
    "SecretUnrotated",
    "SecretUnusable",
    "SecretsDamaged",
    "SecretsError",
    "SecretsExposed",
    "SecretsKeyMissing",
    "SecretsLocked",
    "SecretsNewer",
    "SecretsRekeyRefused",
    "SecretsScope",
    "SecretsStorage",
    "SecretsUnavailable",
    "SecretsWrongKey",
    "StoredSecret",
    "Summary",
    "VaultDenied",
    "VaultError",
    "VaultLimited",
    "VaultMalformed",
    "VaultMount",
    "VaultSealed",
    "VaultTokenMissing",
    "VaultUnreachable",
    "VaultUntrusted",
    "__version__",
]
