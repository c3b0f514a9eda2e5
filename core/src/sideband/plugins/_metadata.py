"""Read the entry points of installed plugins, without importing plugins.

The result is cached in an index per Python environment, which is valid only for the exact key it was written for.

The command line calls this module first, so a hit of the index imports only light parts of the standard library.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from stat import S_ISREG
from typing import Any

from .._version import __version__
from ._cache import cache_file, read_cache, write_cache
from ._entry_point import EntryPoint, Installed

__all__ = ["find_entry_points", "index_file", "read_installed"]

_TYPES = [type(field) for field in EntryPoint(1, "", "", "", "", "")]


def find_entry_points(kind: str | None = None, *, home: str | os.PathLike[str] | None = None) -> tuple[EntryPoint, ...]:
    """Return the entry points of all plugins, or of one kind, sorted by kind, name and distribution.

    Args:
        kind: a kind such as ``op``, ``hook`` or ``skill``; ``None`` for all.
        home: the host's state folder, which contains the index; if ``None``, all metadata is read again.

    Example:
        >>> find_entry_points("no-such-kind")
        ()
    """
    return tuple(found for found in read_installed(home=home).entry_points if kind is None or found.kind == kind)


def read_installed(*, home: str | os.PathLike[str] | None = None) -> Installed:
    """Return the installed entry points, from the index in ``home`` if it is valid, else from the metadata.

    The working directory is ignored even if it is on ``sys.path``, so that an untrusted folder cannot provide plugins.
    """
    path = _search_path()
    folders = [_status(entry) for entry in path]
    key = [__version__, sys.version, sys.prefix, *folders]
    if home is not None and (cached := _from_index(read_cache(index_file(home), key))) is not None:
        return cached
    from ._scan import scan

    files = [_status(file) for entry in path for file in _watched(entry)]
    installed = scan(path)
    if home is not None:
        changed = (time for _, time, _ in (*folders, *files))
        write_cache(index_file(home), key, {**installed._asdict(), "files": files}, changed=changed)
    return installed


def _search_path() -> list[str]:
    """Return the distinct folders of ``sys.path`` that may contain plugins, as absolute paths.

    The working directory is included only if it is part of the Python environment.
    """
    path = os.path  # importing pathlib takes longer than the rest of this module
    try:
        here = path.realpath(os.getcwd())  # noqa: PTH109  as above
    except FileNotFoundError:
        here = ""  # the working directory was deleted
    environment = path.join(path.realpath(sys.prefix), "")
    found = dict.fromkeys(path.abspath(entry) for entry in sys.path if entry)
    return [entry for entry in found if path.realpath(entry) != here or here.startswith(environment)]


def _status(path: str) -> Any:
    """Return a path with mtime and size, or zeros if there is no such file. The size of a folder says nothing."""
    try:
        status = os.stat(path)  # noqa: PTH116  pathlib is slow to import
    except OSError:
        return [path, 0, 0]
    return [path, status.st_mtime_ns, status.st_size if S_ISREG(status.st_mode) else 0]


def _watched(folder: str) -> Iterator[str]:
    """Yield the files whose content can change without the folder: the metadata of plugins and of source folders."""
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208  as above
    except OSError:
        return
    for name in names:
        file = f"{folder}/{name}/entry_points.txt"
        if name.endswith(".egg-info"):
            yield from (file, f"{folder}/{name}/PKG-INFO")
        elif name.endswith(".dist-info") and _has_plugins(file):
            yield from (file, f"{folder}/{name}/METADATA", f"{folder}/{name}/RECORD")


def _has_plugins(file: str) -> bool:
    try:
        with open(file, "rb") as opened:  # noqa: PTH123  as above
            return b"[sideband." in opened.read()
    except OSError:
        return False


def index_file(home: str | os.PathLike[str]) -> str:
    """Return the path of the index of this Python environment in ``home``."""
    return cache_file(home, "entry-points")


def _from_index(content: Any) -> Installed | None:
    """Return the content of the index, or ``None`` if a file has changed or the fields are not as expected."""
    try:
        if any(_status(file[0]) != file for file in content["files"]):
            return None
        found = (EntryPoint(*fields) for fields in content["entry_points"])
        entry_points = tuple(one._replace(requires=tuple(one.requires)) for one in found)
        typed = all([*map(type, one)] == _TYPES for one in entry_points)
        return Installed(entry_points, tuple(map(str, content["problems"]))) if typed else None
    except (IndexError, KeyError, TypeError, ValueError):
        return None
