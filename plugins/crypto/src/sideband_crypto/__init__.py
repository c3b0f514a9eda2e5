"""The op family `crypto` of sideband: digests, signatures, encryption and key derivation.

Ops are called by name (`crypto.sign`). Import from here to catch their errors or to use their models.
"""

from ._config import Config
from ._errors import (
    CryptoDecryption,
    CryptoError,
    CryptoKey,
    CryptoLegacy,
    CryptoTooLarge,
    CryptoUnavailable,
    CryptoValue,
)
from ._models import AesCbcText, AesGcmText, CreatedKey, GeneratedKey
from ._scope import CryptoScope
from ._version import __version__

__all__ = [
    "AesCbcText",
    "AesGcmText",
    "Config",
    "CreatedKey",
    "CryptoDecryption",
    "CryptoError",
    "CryptoKey",
    "CryptoLegacy",
    "CryptoScope",
    "CryptoTooLarge",
    "CryptoUnavailable",
    "CryptoValue",
    "GeneratedKey",
    "__version__",
]
