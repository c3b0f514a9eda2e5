"""Install the packages that skills and plugins need, using uv."""

from ._errors import EnvironmentFailed, InstallerMissing
from ._hardening import make_read_only
from ._install import install
from ._limits import PackageLimits
from ._locked import filled, install_locked, resolve
from ._program import find_uv, uv_environment
from ._uv import PackageSource, run_installer
from ._version import __version__

__all__ = [
    "EnvironmentFailed",
    "InstallerMissing",
    "PackageLimits",
    "PackageSource",
    "__version__",
    "filled",
    "find_uv",
    "install",
    "install_locked",
    "make_read_only",
    "resolve",
    "run_installer",
    "uv_environment",
]
