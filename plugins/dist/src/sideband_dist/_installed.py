"""The packages of a Python environment, read from its files without running anything of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import importlib_metadata
from attrs import frozen
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from ._errors import DistInvalid

# Installers write them. They differ although the same wheel is installed.
_OF_INSTALLERS = frozenset({"INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json"})
SEEDS = frozenset({"pip", "setuptools", "wheel", "uv"})
"""Packages that are part of a new environment, which a lock ignores unless they have plugins."""


@frozen
class InstalledPackage:
    """One installed package.

    Args:
        name: the normalized name.
        version: the version.
        requires: the normalized names of what it may need.
        folder: the folder that contains it.
        paths: the paths of its files in that folder, except for those that differ between environments.
        has_plugins: whether it has plugins of sideband.
    """

    name: str
    version: str
    requires: tuple[str, ...]
    folder: Path
    paths: tuple[str, ...]
    has_plugins: bool

    def hashes(self) -> str:
        """Return the SHA-256 of each file, in lines such as those of sha256sum.

        Raises:
            DistInvalid: if a file cannot be read, or its path cannot be written into a lock.
        """
        lines = []
        for path in self.paths:
            if re.search(r"'''|[\x00-\x1f\x7f]", path):
                raise DistInvalid(self.name, f"the path {path!r} cannot be locked", hint="report it to its author")
            try:
                digest = hashlib.sha256((self.folder / path).read_bytes()).hexdigest()
            except OSError as error:
                hint = "install the package again"
                raise DistInvalid(self.name, f"{path} cannot be read: {error.strerror}", hint=hint) from error
            lines.append(f"{digest}  {path}\n")
        return "".join(lines)


def package_folders(environment: Path) -> list[Path]:
    """Return the folders of an environment that contain packages.

    Raises:
        DistInvalid: if it is not a Python environment.
    """
    folders = sorted(environment.glob("lib*/python3.*/site-packages"))
    if not folders:
        hint = "name the folder of a virtual environment, such as .venv"
        raise DistInvalid(environment, "it is not a Python environment", hint=hint)
    return list({folder.resolve(): folder for folder in folders}.values())


def installed_packages(folders: Iterable[Path]) -> Mapping[str, InstalledPackage]:
    """Return the packages in these folders by normalized name."""
    found: dict[str, InstalledPackage] = {}
    for folder in folders:
        for distribution in importlib_metadata.distributions(path=[str(folder)]):
            name = canonicalize_name(distribution.metadata["Name"] or "")
            if name and name not in found:
                found[name] = _package(name, distribution, folder)
    return dict(sorted(found.items()))


def _package(name: str, distribution: Any, folder: Path) -> InstalledPackage:
    requires = {one for line in distribution.requires or () if (one := _required(line))}
    paths = {path.as_posix() for path in distribution.files or ()}
    kept = sorted(path for path in paths if _is_kept(path))
    plugins = "[sideband." in (distribution.read_text("entry_points.txt") or "")
    return InstalledPackage(name, distribution.version, tuple(sorted(requires)), folder, tuple(kept), plugins)


def _required(line: str) -> str:
    try:
        return canonicalize_name(Requirement(line).name)
    except InvalidRequirement:
        return ""


def _is_kept(path: str) -> bool:
    """Return whether a file is the same in each environment with the same wheel."""
    parts = path.split("/")
    of_installer = len(parts) == 2 and parts[0].endswith(".dist-info") and parts[1] in _OF_INSTALLERS
    return ".." not in parts and not path.startswith("/") and not path.endswith(".pyc") and not of_installer
