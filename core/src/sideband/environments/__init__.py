"""Environments with the dependencies of skills. The library `sideband_skill_packages` installs them."""

from ._environments import Environment, Environments
from ._errors import EnvironmentMissing

__all__ = ["Environment", "EnvironmentMissing", "Environments"]
