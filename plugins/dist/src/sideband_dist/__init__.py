"""Distributions: the exact plugins of a team, assembled in ``sideband.toml`` and locked in ``sideband.lock``.

The command ``sideband dist`` does all of this.
"""

from ._errors import DistChanged, DistError, DistInvalid, DistRefused, InstallFailed
from ._model import DistLock, DistLockPackage, DistLockPlugin, DistLockTable, schema
from ._version import __version__

__all__ = [
    "DistChanged",
    "DistError",
    "DistInvalid",
    "DistLock",
    "DistLockPackage",
    "DistLockPlugin",
    "DistLockTable",
    "DistRefused",
    "InstallFailed",
    "__version__",
    "schema",
]
