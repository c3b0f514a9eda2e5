"""The op family `plist` of sideband: property lists as plain data.

The ops are used by name (`plist.parse`); what is here is for code that catches their errors.
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
