"""Compare environments with locks."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

from sideband.plugins import LOCK_FILE, Lock, package_differences

from ._files import lock_text, read_dist_lock
from ._installed import SEEDS, installed_packages, package_folders
from ._locking import is_pure
from ._model import DistLock


def environment_differences(lock: DistLock, environment: Path, *, placed: bool = True) -> Iterator[str]:
    """Yield each difference between an environment and a lock.

    Args:
        lock: the lock.
        environment: the folder of the environment.
        placed: whether the lock must also be in the environment.

    Raises:
        DistInvalid: if it is not an environment.
    """
    folders = package_folders(environment)
    if placed:
        yield from _differences_of_locks(lock, environment / LOCK_FILE)
    reader = Lock(str(environment / LOCK_FILE), tomllib.loads(lock_text(lock)))
    names = [str(folder) for folder in folders]
    for name in reader.packages:
        if reader.package(name).metadata:
            yield from package_differences(reader, name, names)
    for name, package in installed_packages(folders).items():
        if name not in reader.packages and (name not in SEEDS or package.has_plugins):
            yield f"{name} {package.version} is installed, but not in the lock"


def _differences_of_locks(lock: DistLock, file: Path) -> Iterator[str]:
    if not file.exists():
        yield f"{file} is missing, so hosts are not restricted"
        return
    placed = read_dist_lock(file)
    if _portable(placed) != _portable(lock):
        yield f"{file} is another lock: it was made from sideband.toml {placed.manifest[:12]}, not {lock.manifest[:12]}"


def _portable(lock: DistLock) -> DistLock:
    """Return a lock without what differs between platforms."""
    packages = [one if is_pure(one) else one.model_copy(update={"files": "", "requires": []}) for one in lock.packages]
    return lock.model_copy(update={"packages": packages})
