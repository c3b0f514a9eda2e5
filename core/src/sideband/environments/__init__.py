"""The packages that skills depend on: ``host.environments`` finds and installs them."""

from ._content import Environment
from ._environments import Environments
from ._errors import EnvironmentFailed, EnvironmentMissing, InstallerMissing
from ._installing import PackageSource

__all__ = [
    "Environment",
    "EnvironmentFailed",
    "EnvironmentMissing",
    "Environments",
    "InstallerMissing",
    "PackageSource",
]
