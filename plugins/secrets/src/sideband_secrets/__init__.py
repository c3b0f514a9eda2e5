"""The op family `secrets` of sideband: credentials that skills can use and never see.

The ops are used by name (`secrets.set`); what is here is for code that catches their errors or adds a backend.
"""

from ._backends import Backend, Stored, Summary
from ._config import Config
from ._errors import (
    SecretAudience,
    SecretBinary,
    SecretMissing,
    SecretsDamaged,
    SecretsError,
    SecretsExposed,
    SecretsKeyMissing,
    SecretsLocked,
    SecretsStorage,
    SecretsUnavailable,
    SecretsWrongKey,
    SecretUnusable,
)
from ._models import SecretInfo, SecretList, SecretsScope
from ._version import __version__

__all__ = [
    "Backend",
    "Config",
    "SecretAudience",
    "SecretBinary",
    "SecretInfo",
    "SecretList",
    "SecretMissing",
    "SecretUnusable",
    "SecretsDamaged",
    "SecretsError",
    "SecretsExposed",
    "SecretsKeyMissing",
    "SecretsLocked",
    "SecretsScope",
    "SecretsStorage",
    "SecretsUnavailable",
    "SecretsWrongKey",
    "Stored",
    "Summary",
    "__version__",
]
