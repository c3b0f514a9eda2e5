"""The op family `crypto` of sideband: digests, signatures, encryption, and keys made of passwords.

The ops are used by name (`crypto.sign`); what is here is for code that catches their errors or builds on their models.
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
