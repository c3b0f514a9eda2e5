"""Servers that are packages of npm or PyPI: locked, accepted by the user, and installed by the host."""

from ._reference import PackageReference, reference_of
from ._server_packages import InstalledProgram, MissingPackages, ServerPackages

__all__ = ["InstalledProgram", "MissingPackages", "PackageReference", "ServerPackages", "reference_of"]
