"""Compare the files of locked packages with the lock, before anything of them is imported."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from ._errors import PluginDrifted
from ._lock import Lock, LockedPackage, environment_lock
from ._records import PluginRecord

__all__ = ["package_differences"]

_path = os.path  # paths are texts, as in the lock
_digests: dict[str, tuple[object, str]] = {}


def verify(record: PluginRecord) -> None:
    """Check the files of a locked plugin, and of the packages that it needs, and what Python would import for them.

    Of the core and the packages that it needs, which are running, only the place is checked.

    Raises:
        PluginDrifted: if something differs from the lock; it names the first differences.
    """
    lock = environment_lock()
    locked = lock.plugin(record.kind, record.name) if lock is not None else None
    if lock is None or locked is None:
        raise PluginDrifted(record, ["the lock of this environment does not contain it anymore"])
    # Bytecode elsewhere has no hash, and a variable of the process names the folder.
    sys.pycache_prefix = None
    found = [
        problem
        for name in lock.closure(locked.package)
        if name == locked.package or lock.package(name).metadata
        for problem in _differences(lock, lock.package(name), whole=name not in lock.core_closure)
    ]
    if found:
        raise PluginDrifted(record, found)


def package_differences(lock: Lock, name: str, folders: list[str] | None = None) -> Iterator[str]:
    """Yield each difference between a package of a lock and an environment.

    Args:
        lock: the lock.
        name: the normalized name of the package.
        folders: the folders of the environment that contain packages; by default those of this one.

    Example:
        >>> lock = Lock("sideband.lock", {"version": 1, "plugins": [], "packages": []})
        >>> [problem for name in lock.packages for problem in package_differences(lock, name)]
        []
    """
    package = lock.package(name)
    folders = environment_folders() if folders is None else folders
    if not (root := root_of(package, folders)):
        yield missing(package, folders)
    else:
        yield from _file_differences(lock, package, root)


def environment_folders() -> list[str]:
    """Return the folders on ``sys.path`` that are part of this Python environment."""
    prefix = _path.join(_path.realpath(sys.prefix), "")
    return [one for one in sys.path if one and _path.join(_path.realpath(one), "").startswith(prefix)]


def root_of(package: LockedPackage, folders: list[str]) -> str:
    """Return the folder that contains the metadata of a locked package; empty if it is not installed."""
    return next((one for one in folders if package.metadata and _path.isfile(f"{one}/{package.metadata}")), "")


def missing(package: LockedPackage, folders: list[str]) -> str:
    """Return the problem with a locked package that is not installed."""
    stem = package.metadata.rpartition("-" + package.version)[0] or package.name.replace("-", "_")
    for folder in folders:
        for name in sorted(os.listdir(folder)) if _path.isdir(folder) else ():  # noqa: PTH208  texts
            if name.startswith(f"{stem}-") and name.endswith(".dist-info"):
                version = name.removeprefix(f"{stem}-").removesuffix(".dist-info")
                return f"{package.name} {version} is installed, but the lock has {package.version}"
    return f"{package.name} {package.version}, which is in the lock, is not installed"


def _differences(lock: Lock, package: LockedPackage, *, whole: bool) -> Iterator[str]:
    folders = environment_folders()
    root = root_of(package, folders)
    if not root:
        yield missing(package, folders)
        return
    if whole:
        yield from _file_differences(lock, package, root)
    for top in sorted(_tops(package.files)):
        origin = _foreign_origin(top, root, package.files)
        if origin is not None and not _is_of_another(lock, package, _path.relpath(origin, root)):
            yield f"Python would import `{top}` from {origin}, not from {package.name} in {root}"


def _file_differences(lock: Lock, package: LockedPackage, root: str) -> Iterator[str]:
    about = f"{package.name} {package.version}"
    for path, digest in package.files.items():
        try:
            found = _digest(f"{root}/{path}")
        except FileNotFoundError:
            yield f"{about}: {path} is missing"
        except OSError as error:
            yield f"{about}: {path} cannot be read: {error.strerror}"
        else:
            if found != digest:
                yield f"{about}: {path} has changed: its SHA-256 is {found}, and the lock has {digest}"
    own = {path.partition("/")[0] for path in package.files if "/" in path}
    for top in sorted(name for name in own if not name.endswith(".dist-info")):
        for path in _files_in(f"{root}/{top}", top):
            if path not in package.files and not _is_of_another(lock, package, path):
                yield f"{about}: {path} is not in the lock"


def _files_in(folder: str, relative: str) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if one != "__pycache__")
        here = relative + parent[len(folder) :]
        # Python imports from a folder behind a link, which the walk does not follow.
        links = [one for one in folders if _path.islink(f"{parent}/{one}")]
        yield from (f"{here}/{name}" for name in sorted(names + links))


def _is_of_another(lock: Lock, package: LockedPackage, path: str) -> bool:
    """Return whether another package of the lock has this file, in a folder that they share."""
    return any(path in lock.package(name).files for name in lock.packages if name != package.name)


def _digest(path: str) -> str:
    """Return the SHA-256 of a file, which is read again only if it has changed."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123  a text
        status = os.fstat(file.fileno())
        key = status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size
        known = _digests.get(path)
        if known is None or known[0] != key:
            known = _digests[path] = key, hashlib.file_digest(file, "sha256").hexdigest()
        return known[1]


def _tops(files: Mapping[str, str]) -> set[str]:
    """Return the names of the top-level modules and packages."""
    suffixes = (".py", ".so", ".pyd")
    tops = {path.partition("/")[0].partition(".")[0] for path in files if path.endswith(suffixes)}
    return {top for top in tops if top.isidentifier()}


def _foreign_origin(top: str, root: str, files: Mapping[str, str]) -> str | None:
    """Return from where Python would import a module, if that is not a file of the package."""
    try:
        spec: Any = find_spec(top)
    except (ImportError, ValueError, AttributeError):
        spec = None
    if spec is None:
        return "nowhere"
    places = [spec.origin] if spec.has_location else [f"{one}/" for one in spec.submodule_search_locations or ()]
    for place in places or [spec.origin or "memory"]:
        # The folder may be a link, and so may the file be, into the cache of the installer.
        folder, name = _path.split(place)
        relative = _path.relpath(_path.join(_path.realpath(folder), name), _path.realpath(root))
        if relative not in files and not (place.endswith("/") and relative == top):
            return str(place)
    return None
