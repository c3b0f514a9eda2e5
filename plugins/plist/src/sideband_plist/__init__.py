"""The op family `plist` of sideband: property lists as plain data.

Ops are called by name (`plist.parse`). Import from here to catch their errors.
"""

from ._config import Config
from ._errors import PlistError, PlistMissing, PlistRefused, PlistSyntax, PlistTooLarge, PlistValue
from ._version import __version__

__all__ = [
    "Config",
    "PlistError",
    "PlistMissing",
    "PlistRefused",
    "PlistSyntax",
    "PlistTooLarge",
    "PlistValue",
    "__version__",
]
