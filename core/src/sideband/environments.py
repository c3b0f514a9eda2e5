"""The packages that skills depend on: ``host.environments`` finds and installs them."""

from __future__ import annotations

from ._environment_errors import EnvironmentFailed, EnvironmentMissing, InstallerMissing
from ._environment_files import Environment
from ._environments import Environments
from ._installing import PackageSource

__all__ = [
    "Environment",
    "EnvironmentFailed",
    "EnvironmentMissing",
    "Environments",
    "InstallerMissing",
    "PackageSource",
]
