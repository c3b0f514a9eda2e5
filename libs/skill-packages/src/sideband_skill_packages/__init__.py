"""Install the packages that skills depend on, using uv."""

from ._errors import EnvironmentFailed, InstallerMissing
from ._install import install
from ._uv import PackageSource
from ._version import __version__

__all__ = ["EnvironmentFailed", "InstallerMissing", "PackageSource", "__version__", "install"]
